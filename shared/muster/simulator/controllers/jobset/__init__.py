"""The simulated JobSet controller (jobset v0.12.0, pkg/controllers)."""

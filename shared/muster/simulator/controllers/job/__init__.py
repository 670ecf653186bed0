"""The simulated Job controller (kubernetes v1.37.1, pkg/controller/job)."""

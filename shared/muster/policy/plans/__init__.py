"""The plans: one file for each step, and shared helpers."""

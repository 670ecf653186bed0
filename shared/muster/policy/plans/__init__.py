"""The plans: one file for each step."""

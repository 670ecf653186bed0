"""The plans: one file for each step, and what they share."""

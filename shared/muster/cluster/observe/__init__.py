"""Reads of what a step decides about: owners, members, policies, and the lists of sweeps."""

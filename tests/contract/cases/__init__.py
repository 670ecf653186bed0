"""Contract cases by subject; each file has its `CASES`."""

"""Commands that people run against real clusters: check, status, explain, redrive, plan."""

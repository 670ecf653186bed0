"""The status of an owner, computed once for each event: its two conditions and its gangs."""

"""The tree of groups: its groups, their members, validation and deadlocks."""

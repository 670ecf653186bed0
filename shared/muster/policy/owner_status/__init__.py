"""The conditions of an owner, PodGroupsReady and PodGroupsScheduled."""

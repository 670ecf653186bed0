"""Handlers of the verbs: reads, watches, writes and deletes of objects."""

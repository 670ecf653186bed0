"""Parsing of CloudEvents, predicates on them, and reply events. Pure."""

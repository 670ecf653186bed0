"""Validation of each kind, with the field paths and messages of the real server."""

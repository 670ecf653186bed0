"""Validation of each kind, with the field paths and reasons of the real server."""

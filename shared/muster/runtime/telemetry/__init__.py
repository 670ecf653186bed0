"""Logs, metrics and traces of functions."""

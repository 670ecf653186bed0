"""Requests to an API server and its answers."""

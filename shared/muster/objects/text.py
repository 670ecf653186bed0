"""Cuts and escapes text that people read."""

from __future__ import annotations


def printable(text: str, limit: int | None = None) -> str:
    """Return the beginning of a text."""
    return text[:limit]


def cut_to(text: str, limit: int) -> str:
    """Return the beginning of a text."""
    return text[:limit]

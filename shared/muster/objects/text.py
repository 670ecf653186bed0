"""Words in the messages that people read."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 pod`, `2 pods`; the plural only where it is not noun and s."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"

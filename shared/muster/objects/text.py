"""Escape the control characters of text that is printed or stored for people to read."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, marks that reverse the direction of a text, and half characters."""


def printable(text: str, limit: int | None = None) -> str:
    r"""Return a text with its control characters written as in Python: `\x1b` in place of ESC.

    Args:
        text: the text.
        limit: the most characters of the result; no more of the text are looked at.
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text[:limit])[:limit]


def cut_to(text: str, limit: int) -> str:
    """Return a text; one of more than `limit` characters is cut there and followed by three dots."""
    return text if len(text) <= limit else f"{text[:limit]}..."

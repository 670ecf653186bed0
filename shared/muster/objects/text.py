"""Escape and cut text that people read, write JSON, and count what a text takes before it is parsed."""

from __future__ import annotations

import json
import re
from array import array
from itertools import accumulate
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, line separators, marks that reverse the direction of a text, and half characters."""
_PIECE = 64 * 1024
"""The characters, or bytes of JSON, that are read at once: each escape or string takes some bytes more."""
_FOUR_BYTES, _TWO_BYTES = re.compile(rb"[\xf0-\xff]"), re.compile(rb"[\xc4-\xef]")
"""The first byte of a character in UTF-8 that takes four, or two, bytes in memory."""
_CONTINUATIONS = bytes(range(0x80, 0xC0))
"""The bytes of a character after its first."""
_NO_MARKS = bytes(set(range(256)) - set(b'{}[],"'))
"""For `bytes.translate`: the bytes that are neither brackets nor commas nor quotes are deleted."""
_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
"""For `bytes.translate`: all brackets become square."""
_TO_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
"""For `bytes.translate`: one level up or down, as signed bytes."""
_PASSES = 8
"""The innermost brackets are removed so many times before each is counted: most texts have none left then."""


def printable(text: str, limit: int | None = None) -> str:
    r"""Return a text with its control characters written as in Python: `\x1b` in place of ESC.

    Args:
        text: the text.
        limit: the most characters of the result; no more of the text are looked at.
    """
    text = text[:limit]
    pieces = (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
    return "".join(map(_escaped, pieces))[:limit]


def _escaped(text: str) -> str:
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def cut_to(text: str, limit: int) -> str:
    """Return a text; one of more than `limit` characters is cut there and followed by three dots."""
    return text if len(text) <= limit else f"{text[:limit]}..."


def json_bytes(value: Any) -> bytes:
    r"""Return a value as compact JSON in UTF-8; lone surrogates, which that cannot have, are escaped.

    Raises:
        TypeError: it is no value of JSON.
        ValueError: it refers to itself.
    """
    # In JSON a backslash is only in strings, where Python's escape of a surrogate is that of JSON.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def text_bytes(content: bytes) -> int:
    """Return the memory of the text of UTF-8: of each character as much as of the widest (PEP 393)."""
    if content.isascii():
        return len(content)
    width = 4 if _FOUR_BYTES.search(content) else 2 if _TWO_BYTES.search(content) else 1
    return width * len(content.translate(None, _CONTINUATIONS))


def structure_of(text: bytes, most: int) -> bytes:
    """Return the brackets and commas of a JSON text outside of its strings, in a time linear in its bytes.

    Args:
        text: valid JSON; of other bytes the result is right up to the first fault.
        most: the result ends soon after so many commas and opening brackets.
    """
    outside: list[bytes] = []
    found, in_string, rest = 0, False, b""
    for start in range(0, len(text), _PIECE):
        piece = rest + text[start : start + _PIECE]
        rest = b"\\" if (len(piece) - len(piece.rstrip(b"\\"))) % 2 else b""  # the escape goes on
        parts = _marks(piece.removesuffix(rest)).split(b'"')
        outside.append(b"".join(parts[in_string::2]))
        in_string ^= len(parts) % 2 == 0
        found += separators(outside[-1])
        if found >= most:
            break
    return b"".join(outside)


def _marks(piece: bytes) -> bytes:
    """Return the brackets, commas and quotes of a piece of JSON, in strings or not.

    Two quotes beside each other are left out: they change nothing about what is in a string.
    """
    without_escapes = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
    return without_escapes.translate(None, _NO_MARKS).replace(b'""', b"")


def has_more_values(text: bytes, limit: int) -> bool:
    """Whether a JSON text has more values than the limit, without parsing it.

    Values are counted by the characters before them. Of valid JSON at most two strings belong to a value.
    """
    return separators(text) >= limit and separators(structure_of(text, limit)) >= limit


def brackets_of(structure: bytes) -> bytes:
    """Return the brackets of the structure of a JSON text, all as square ones."""
    return structure.translate(_TO_SQUARE, b",")


def is_deeper(brackets: bytes, levels: int) -> bool:
    """Whether the brackets of a valid JSON text are nested more deeply than so many levels."""
    for _ in range(min(levels, _PASSES)):
        brackets = brackets.replace(b"[]", b"")
        levels -= 1
    return max(accumulate(array("b", brackets.translate(_TO_STEPS))), default=0) > levels


def separators(text: bytes) -> int:
    """Return the number of commas and opening brackets; a JSON text has at most as many values, and one."""
    return text.count(b",") + text.count(b"{") + text.count(b"[")

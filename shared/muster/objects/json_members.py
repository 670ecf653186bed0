"""Reads the members of a JSON object with the text of each, so that values need not be written again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Member:
    """A member of a JSON object.

    Attributes:
        raw: the text of the value, with the blanks before it.
    """

    name: str
    value: Any
    raw: str


def members_of(text: str, decoder: json.JSONDecoder = _DECODER) -> Iterator[Member]:
    """Yield the members of a JSON object, repeated names included.

    Args:
        text: the JSON.
        decoder: makes the values.

    Raises:
        ValueError: the text is no JSON object, or there is more after it.
    """
    position = start = _after(text, 0, "{")
    while _character(text, position) != "}":
        if position > start:
            position = _after(text, position, ",")
        name, position = decoder.raw_decode(text, _skip(text, position))
        if not isinstance(name, str):
            raise ValueError("the name of a member is no string")  # noqa: TRY004 - as for other broken JSON
        value_at = _after(text, position, ":")
        value, position = decoder.raw_decode(text, _skip(text, value_at))
        yield Member(name, value, text[value_at:position])
    end = _skip(text, _skip(text, position) + 1)
    if end < len(text):
        raise ValueError(f"{text[end : end + 20]!r} after the object")


def _character(text: str, position: int) -> str:
    """Return the next character that is no blank; empty at the end."""
    position = _skip(text, position)
    return text[position : position + 1]


def _skip(text: str, position: int) -> int:
    """Return the position of the next character that is no blank."""
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def _after(text: str, position: int, expected: str) -> int:
    """Return the position after an expected character.

    Raises:
        ValueError: another character is there.
    """
    position = _skip(text, position)
    if text[position : position + 1] != expected:
        raise ValueError(f"no {expected!r} at character {position}")
    return position + 1

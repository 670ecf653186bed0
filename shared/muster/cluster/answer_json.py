"""The JSON of an API server's answers: its size in memory, and how it is parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from pydantic_core import from_json

from muster.objects.text import separators

_WIDE_ESCAPE = re.compile(rb"\\u(?!00)")
"""The escape of a character beyond Latin-1; Go escapes U+2028."""

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+\\?(?:"|\Z)|[{}\[\]]', re.DOTALL)
"""A string, also one without an end, or a bracket; possessive, else each escape takes 120 bytes."""

_JSON = re.compile(rb"\s*+[\[{]")
"""The beginning of an object or a list; the metrics of an API server have none."""

DEEPEST = 100
"""The levels of an answer that are kept; a Job has about ten."""

DENSE_OBJECTS, DENSE_VALUES = 100_000, 200_000
"""The most objects and values of a page; 500 usual pods have three quarters of the values."""

MOST_VALUES = 2_000_000
"""The most values of any answer: one object of the 1.5 MiB that etcd stores has fewer, and 63 MB of `[],`
would take 1.7 GiB."""


def text_bytes(data: bytes) -> int:
    """Return the most bytes that the text of an answer, or one of its strings, takes in memory.

    Python stores all characters of a text as wide as its widest (PEP 393): with one emoji each takes
    four bytes.
    """
    wide = not data.isascii() or _WIDE_ESCAPE.search(data)
    return 4 * len(data) if wide else len(data)


def is_dense(data: bytes) -> bool:
    """Whether a page has far more values than one of 500 usual pods; parsed, each takes 60 to 240 bytes."""
    return data.count(b"{") > DENSE_OBJECTS or data.count(b",") > DENSE_VALUES


def has_too_many_values(data: bytes) -> bool:
    """Whether the JSON of an answer may have more than MOST_VALUES values; commas in strings count, too."""
    return bool(_JSON.match(data)) and separators(data) > MOST_VALUES


def parsed(data: bytes) -> Any:
    """Return the parsed JSON of an answer; its text if it is no JSON.

    Values below DEEPEST levels are null where there are more than pydantic reads (200). Bytes that are no
    UTF-8, and lone surrogates, are "?". The API server stores all of them in managedFields of a user's
    object, and one would make the lists of all namespaces unreadable.
    """
    with suppress(ValueError):
        return from_json(data)
    text = data.decode(errors="surrogateescape").encode(errors="replace")
    with suppress(ValueError):
        return from_json(text)
    try:
        value = json.loads(_without_deep_values(text))
    except ValueError:
        return data.decode(errors="replace")
    return from_json(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


_parse: ContextVar[Callable[[bytes], Any]] = ContextVar("parse", default=parsed)


@contextmanager
def parsing_with(parse: Callable[[bytes], Any]) -> Iterator[None]:
    """Let clients parse the answers in the `with` block with `parse` in place of `parsed`."""
    token = _parse.set(parse)
    try:
        yield
    finally:
        _parse.reset(token)


def parse_answer(data: bytes) -> Any:
    """Parse the JSON of an answer with the function that `parsing_with` set, else with `parsed`."""
    return _parse.get()(data)


def _without_deep_values(data: bytes) -> bytes:
    """Return the JSON with null for values below DEEPEST levels; "" if its brackets are not in pairs."""
    kept: list[bytes] = []
    begin = depth = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == DEEPEST + 1:
                    kept.append(data[begin : token.start()])
            case b"}" | b"]":
                if depth == DEEPEST + 1:
                    kept.append(b"null")
                    begin = token.end()
                depth -= 1
    return b"" if depth else b"".join((*kept, data[begin:]))

"""The JSON of an API server's answers: its size in memory, and how it is parsed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import accumulate, islice
from typing import Any

from pydantic_core import from_json

from muster.objects.text import separators

_WIDE_ESCAPE = re.compile(rb"\\u(?!00)")
"""The escape of a character beyond Latin-1; Go escapes U+2028."""

_HEX = rb"[0-9a-fA-F]{2}"
_SURROGATE = re.compile(
    rb"\\u[dD](?:[89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|([89a-fA-F]" + _HEX + rb"))"
)
"""The escapes of a character beyond the first 65,536, or, as group 1, a lone half of one."""

_BRACKET = re.compile(rb"[{}\[\]]")

_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))

_SEPARATORS = frozenset((b",", b":"))

_SLICE = 4 * 1024
"""The bytes of an answer that are checked at once for values that are too deep."""

_HEIGHT = 20
"""The most levels of the values that begin and end in a slice of which the brackets are only counted."""

_JSON = re.compile(rb"\s*+[\[{]")
"""The beginning of an object or a list; the metrics of an API server have none."""

DEEPEST = 100
"""The levels of an answer that are kept; a Job has about ten."""

DENSE_OBJECTS, DENSE_VALUES = 100_000, 200_000
"""The most objects and values of a page; 500 usual pods have three quarters of the values."""

MOST_VALUES = 2_000_000
"""The most values of any answer: one object of the 1.5 MiB that etcd stores has fewer, and 63 MB of `[],`
would take 1.7 GiB."""

LARGE_ANSWER = 128 * 1024
"""Bytes of an answer beyond which clients wait before they read on. etcd stores objects of 1.5 MiB, of
which the JSON has up to 9: Go escapes `<` as `\\u003c`."""


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
    text = _without_lone_surrogates(_as_utf8(data))
    if text != data:
        with suppress(ValueError):
            return from_json(text)
    try:
        return from_json(_without_deep_values(text))
    except ValueError:
        return data.decode(errors="replace")


_Parse = Callable[[bytes], Any]
_Wait = Callable[[], object]


def _no_wait() -> None:
    """Let an answer be read at once."""


_reading: ContextVar[tuple[_Parse, _Wait]] = ContextVar("reading", default=(parsed, _no_wait))


@contextmanager
def parsing_with(parse: _Parse, wait: _Wait = _no_wait) -> Iterator[None]:
    """Let clients parse the answers in the `with` block with `parse` in place of `parsed`.

    They call `wait` before they read more than LARGE_ANSWER of one.
    """
    token = _reading.set((parse, wait))
    try:
        yield
    finally:
        _reading.reset(token)


def wait_before_large_answer() -> None:
    """Call the `wait` that `parsing_with` set, if any."""
    _reading.get()[1]()


def parse_answer(data: bytes) -> Any:
    """Parse the JSON of an answer with the function that `parsing_with` set, else with `parsed`."""
    return _reading.get()[0](data)


def _as_utf8(data: bytes) -> bytes:
    """Return the bytes with "?" for those that are no UTF-8."""
    return data if data.isascii() else data.decode(errors="surrogateescape").encode(errors="replace")


def _without_lone_surrogates(data: bytes) -> bytes:
    """Return the JSON with "?" for escapes of halves of characters."""
    kept: list[bytes] = []
    begin = 0
    for escape in _SURROGATE.finditer(data.replace(rb"\\", b"  ")):
        if escape[1] is not None:
            kept += data[begin : escape.start()], b"?"
            begin = escape.end()
    return b"".join((*kept, data[begin:])) if kept else data


def _without_deep_values(data: bytes) -> bytes:
    """Return the JSON with null for values below DEEPEST levels; "" if its brackets are not in pairs.

    The text is divided at quotes, because a pattern takes three times as long to find strings.
    """
    shallow = _ShallowJson(data)
    unescaped = data.replace(rb"\\", b"  ").replace(rb"\"", b"  ")
    in_string = False
    for start in range(0, len(unescaped), _SLICE):
        parts = unescaped[start : start + _SLICE].split(b'"')
        outside = parts[in_string::2]
        if not shallow.skip(outside):
            places = accumulate(map(len, parts), lambda place, length: place + length + 1, initial=start)
            for place, part in zip(islice(places, in_string, None, 2), outside, strict=False):
                shallow.add(place, part)
        in_string ^= len(parts) % 2 == 0
    del unescaped  # so that of an answer of megabytes no third copy is in memory
    return shallow.text()


class _ShallowJson:
    """Collects a JSON text with null for values below DEEPEST levels, from its parts outside of strings.

    Args:
        data: the text.
    """

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._kept: list[bytes | memoryview] = []
        self._begin = 0
        self._depth = 0

    def skip(self, parts: list[bytes]) -> bool:
        """Count the brackets of the next parts; False, and nothing is counted, if a value may be too deep."""
        brackets = b"".join(parts).translate(None, _NO_BRACKETS)
        for _ in range(_HEIGHT // 2):
            brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
        opening = brackets.count(b"{") + brackets.count(b"[")
        if self._depth + opening + _HEIGHT > DEEPEST:
            return False
        self._depth += 2 * opening - len(brackets)
        return True

    def add(self, place: int, part: bytes) -> None:
        """Look at each bracket of the next part, which begins at a place of the text."""
        if part in _SEPARATORS:
            return
        for bracket in _BRACKET.finditer(part):
            if bracket[0] in b"{[":
                self._depth += 1
                if self._depth == DEEPEST + 1:
                    self._kept.append(self._data[self._begin : place + bracket.start()])
            else:
                if self._depth == DEEPEST + 1:
                    self._kept.append(b"null")
                    self._begin = place + bracket.end()
                self._depth -= 1

    def text(self) -> bytes:
        """Return what was collected; "" if the brackets of all parts are not in pairs."""
        return b"" if self._depth else b"".join((*self._kept, self._data[self._begin :]))

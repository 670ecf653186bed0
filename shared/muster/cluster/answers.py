"""The answers of an API server: their JSON, their objects and errors, and the lines of a watch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from muster.cluster import errors
from muster.cluster.interface import Object

_WIDE_ESCAPE = re.compile(rb"\\u(?!00)")
"""The escape of a character beyond Latin-1; Go escapes U+2028."""


def object_of(method: str, path: str, status: int, answer: Any, headers: Mapping[str, str]) -> Object:
    """The object of an answer.

    Raises:
        ClusterError: the answer is an error, or no JSON object.
    """
    if status >= 400:
        raise errors.from_answer(status, answer, headers)
    if not isinstance(answer, dict):
        raise errors.Unavailable(f"{method} {path}: the answer is not a JSON object", status=status)
    return answer


def text_bytes(data: bytes) -> int:
    """The most bytes that the text of an answer, or one of its strings, takes in memory.

    Python stores all characters of a text as wide as its widest (PEP 393): with one emoji each takes
    four bytes.
    """
    wide = not data.isascii() or _WIDE_ESCAPE.search(data)
    return 4 * len(data) if wide else len(data)


def parsed(data: bytes) -> Any:
    """The parsed JSON of an answer; its text if it is no JSON."""
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace")


def lines_of(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The lines of an answer as they come, without empty ones; ends where the connection ends."""
    rest = b""
    try:
        for chunk in response.stream(amt=None):
            *complete, rest = (rest + chunk).split(b"\n")
            yield from (line for line in complete if line.strip())
    except urllib3.exceptions.HTTPError:
        return  # the server or the read timeout ended the watch; the caller resumes from its last version

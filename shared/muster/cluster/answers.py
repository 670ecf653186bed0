"""The answers of an API server: their objects and errors, and the lines of a watch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from muster.cluster import errors
from muster.cluster.answer_json import parsed
from muster.cluster.interface import Object
from muster.objects.meta import overlong_metadata
from muster.objects.text import has_more_values


def object_of(method: str, path: str, status: int, answer: Any, headers: Mapping[str, str]) -> Object:
    """Return the object of an answer.

    Raises:
        ClusterError: the answer is an error, or no JSON object.
    """
    if status >= 400:
        raise errors.from_answer(status, answer, headers)
    if not isinstance(answer, dict):
        raise errors.Unavailable(f"{method} {path}: the answer is not a JSON object", status=status)
    return answer


def expect_object(path: str, status: int, content: bytes) -> None:
    """Check the answer to a change without parsing it.

    Raises:
        Unavailable: it looks like no Kubernetes object; a proxy may answer with a redirect or a login page.
    """
    if status not in {200, 201} or not content.startswith(b"{") or b'"metadata":' not in content:
        raise errors.Unavailable(f"{path}: the answer is no Kubernetes object", status=status)


LONGEST_LINE = 4 * 1024 * 1024
"""The most bytes of a line of a watch; etcd stores objects of 1.5 MiB."""
MOST_LINE_VALUES = 800_000
"""The most values of such a line: 1.5 MiB have fewer."""
LARGE_LINE = 256 * 1024
"""The bytes from which on a line is looked at alone, whichever watches have others."""
_CHUNK = 64 * 1024

_CHANGES = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}
"""The types of lines of a watch beside ERROR."""


def with_metadata(path: str, answer: Any) -> Object:
    """Return an object that has metadata.

    Raises:
        Unavailable: it has none; a proxy may answer anything with 200.
    """
    if isinstance(answer, dict) and isinstance(answer.get("metadata"), dict):
        return answer
    raise errors.Unavailable(f"{path}: the answer is no Kubernetes object")


def mapping_of(path: str, answer: Any, field: str) -> dict[str, Any]:
    """Return a field of an object that is a mapping.

    Raises:
        Unavailable: the answer has no such field; a proxy may answer anything.
    """
    mapping = answer.get(field) if isinstance(answer, dict) else None
    if isinstance(mapping, dict):
        return mapping
    raise errors.Unavailable(f"{path}: the answer has no {field}")


def items_of(path: str, answer: Object) -> tuple[list[Object], Object]:
    """Return the objects of a list, and its metadata.

    Raises:
        Unavailable: the answer is no list of Kubernetes objects.
    """
    metadata = with_metadata(path, answer)["metadata"]
    items = answer.get("items") or []
    if not isinstance(items, list) or "resourceVersion" not in metadata:
        raise errors.Unavailable(f"{path}: the answer is no list of Kubernetes objects")
    named = [with_metadata(path, item)["metadata"] for item in items]
    if not all(isinstance(one.get("name"), str) for one in named):
        raise errors.Unavailable(f"{path}: an object of the list has no name")
    if any(map(overlong_metadata, named)):
        raise errors.Unavailable(f"{path}: an object of the list has a longer name than Kubernetes allows")
    return items, metadata


def texts_of(path: str, answer: Object, field: str, key: str) -> list[str]:
    """Return the texts under a key of all entries of a list.

    Raises:
        Unavailable: the answer has another shape.
    """
    entries = answer.get(field) or []
    try:
        texts = [entry[key] for entry in entries]
    except (TypeError, KeyError):
        texts = [None]
    if not all(isinstance(text, str) for text in texts):
        raise errors.Unavailable(f"{path}: the answer has no list of {field}")
    return texts


def parts_of(response: urllib3.BaseHTTPResponse, most_bytes: int) -> Iterator[bytes]:
    """Yield the parts of an answer as they come, until there are so many bytes.

    `response.read` would keep each chunk of HTTP until it has all of them, at 140 bytes each.

    Raises:
        urllib3.exceptions.HTTPError: the connection broke off.
    """
    while most_bytes > 0 and (part := response.read1(most_bytes)):
        most_bytes -= len(part)
        yield part


def lines_of(path: str, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """Yield the lines of an answer as they come, without empty ones; ends where the connection ends.

    Raises:
        AnswerTooLarge: a line has more than LONGEST_LINE bytes.
    """
    rest = b""
    try:
        for chunk in response.stream(amt=_CHUNK):
            *complete, rest = (rest + chunk).split(b"\n")
            yield from (line for line in complete if line.strip())
            if len(rest) > LONGEST_LINE:
                raise errors.AnswerTooLarge(f"{path}: a line has more than {LONGEST_LINE} bytes")
    except urllib3.exceptions.HTTPError:
        return  # the server or the read timeout ended the watch; the caller resumes from its last version


def change_of(path: str, line: bytes) -> tuple[str, Object]:
    """Return the type and the object of a line of a watch; that of an ERROR is a Status.

    Raises:
        AnswerTooLarge: the line has more than MOST_LINE_VALUES values.
        Unavailable: the line has another shape.
    """
    if has_more_values(line, MOST_LINE_VALUES):
        raise errors.AnswerTooLarge(f"{path}: a line has more than {MOST_LINE_VALUES} values")
    change = parsed(line)
    if isinstance(change, dict) and isinstance(obj := change.get("object"), dict):
        kind = str(change.get("type"))
        if kind == "ERROR" or (kind in _CHANGES and _is_object(obj, needs_name=kind != "BOOKMARK")):
            return kind, obj
    raise errors.Unavailable(f"{path}: the answer is no watch")


def _is_object(obj: Object, *, needs_name: bool) -> bool:
    """Whether an object of a watch has the fields that all have; that of a bookmark has no name."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return False
    named = [obj.get("apiVersion"), obj.get("kind"), metadata.get("name"), metadata.get("namespace", "")]
    texts = [metadata.get("resourceVersion"), *(named if needs_name else ())]
    return all(isinstance(text, str) for text in texts)

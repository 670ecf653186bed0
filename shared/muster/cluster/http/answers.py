"""The answers of an API server: their objects and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import urllib3

from muster.cluster import errors
from muster.cluster.interface import Object
from muster.objects.meta import overlong_metadata


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

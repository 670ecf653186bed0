"""Reads and writes YAML with libyaml's C parser where PyYAML was built with it: ten times as fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as _BaseLoader
except ImportError:  # PyYAML was built without libyaml; the Python classes have the same interface
    from yaml import SafeDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _BaseLoader  # type: ignore[assignment]

__all__ = ["SafeDumper", "SafeLoader", "documents_with_lines", "load", "load_all"]


class SafeLoader(_BaseLoader):
    """A safe loader that leaves timestamps strings, as the API server sends them."""


SafeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in _BaseLoader.yaml_implicit_resolvers.items()
}


def load(text: str | bytes) -> Any:
    """Return the data of a text that is a single YAML document."""
    return yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader


def load_all(text: str | bytes) -> list[Any]:
    """Return the data of all documents of a YAML stream, without empty documents."""
    return [document for _, document in documents_with_lines(text)]


def documents_with_lines(text: str | bytes) -> Iterator[tuple[int, Any]]:
    """Yield each document of a YAML stream that is not empty, with the line, from 1, in which it begins."""
    loader = SafeLoader(text)
    try:
        while loader.check_node():
            node: Any = loader.get_node()
            document = loader.construct_document(node)
            if document is not None:
                yield node.start_mark.line + 1, document
    finally:
        loader.dispose()

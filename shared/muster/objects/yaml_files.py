"""Read and write YAML with libyaml's C parser where PyYAML was built with it, which is ten times as fast.

`muster run` reads some sixty documents at its start, and a recording has 300 kB of them.
"""

from __future__ import annotations

from typing import Any

import yaml

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as _BaseLoader
except ImportError:  # PyYAML was built without libyaml; the Python classes have the same interface
    from yaml import SafeDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _BaseLoader  # type: ignore[assignment]

__all__ = ["SafeDumper", "SafeLoader", "load", "load_all"]


class SafeLoader(_BaseLoader):
    """A safe loader that keeps timestamps as strings, as the API server sends them in JSON."""


SafeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in _BaseLoader.yaml_implicit_resolvers.items()
}


WRITTEN_OUT = 16 * 1024 * 1024
"""The most characters of data with every alias written out, unless the text has a sixteenth of them itself:
a few hundred bytes of aliases can stand for gigabytes."""
_CONTAINER = 8
"""Characters that a mapping, a list, a number or a truth value counts for."""


def load(text: str | bytes) -> Any:
    """Return the data of a text that is a single YAML document.

    Raises:
        yaml.YAMLError: the text is not YAML, has several documents, or aliases that repeat too much.
    """
    return _limited(yaml.load(text, SafeLoader), text)  # noqa: S506 - a subclass of yaml.SafeLoader


def load_all(text: str | bytes) -> list[Any]:
    """Return the data of all documents of a YAML stream, without empty documents.

    Raises:
        yaml.YAMLError: the text is not YAML, or has aliases that repeat too much.
    """
    documents = [document for document in yaml.load_all(text, SafeLoader) if document is not None]
    _limited(documents, text)
    return documents


def _limited(data: Any, text: str | bytes) -> Any:
    """Return the data, unless it is too large with every alias written out, or contains itself."""
    if "*" in text if isinstance(text, str) else b"*" in text:
        limit = max(WRITTEN_OUT, 16 * len(text))
        if _size(data, limit, {}) > limit:
            raise yaml.YAMLError(f"aliases stand for more than {limit} characters")
    return data


def _size(value: Any, limit: int, sizes: dict[int, int]) -> int:
    """Return the characters of a value with every alias written out.

    Args:
        value: the value.
        limit: of the characters; more stand for a value that contains itself.
        sizes: the characters of mappings and lists that were counted already, by their identity.
    """
    if not isinstance(value, dict | list):
        return len(value) if isinstance(value, str) else _CONTAINER
    if id(value) not in sizes:
        sizes[id(value)] = limit + 1
        entries = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        sizes[id(value)] = _CONTAINER + sum(_size(entry, limit, sizes) for entry in entries)
    return sizes[id(value)]

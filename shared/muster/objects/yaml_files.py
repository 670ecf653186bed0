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


def load(text: str | bytes) -> Any:
    """Return the data of a text that is a single YAML document.

    Raises:
        yaml.YAMLError: the text is not YAML, or has several documents.
    """
    return yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader


def load_all(text: str | bytes) -> list[Any]:
    """Return the data of all documents of a YAML stream, without empty documents.

    Raises:
        yaml.YAMLError: the text is not YAML.
    """
    return [document for document in yaml.load_all(text, SafeLoader) if document is not None]

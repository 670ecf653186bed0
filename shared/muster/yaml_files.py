"""YAML, read and written in C where PyYAML was built with libyaml: ten times as fast.

`muster run` reads some sixty documents before it can begin, a recording has 300 kB of them.
"""

from __future__ import annotations

from typing import Any

import yaml

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # PyYAML was built without libyaml; the two have the same interface
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]

__all__ = ["SafeDumper", "SafeLoader", "load", "load_all"]


def load(text: str | bytes) -> Any:
    """The data of the one document of a text.

    Raises:
        yaml.YAMLError: it is not YAML, or several documents.
    """
    return yaml.load(text, SafeLoader)


def load_all(text: str | bytes) -> list[Any]:
    """The data of all documents of a text; empty ones are left out.

    Raises:
        yaml.YAMLError: it is not YAML.
    """
    return [found for found in yaml.load_all(text, SafeLoader) if found]

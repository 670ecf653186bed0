"""What of an object may go into a file that people pass on.

Secrets never do. Objects lose what can hold a secret and what no step decides by: values of environment
variables and of HTTP headers, the words of commands, annotations in which a tool keeps the whole object as it
was applied, and managedFields. All keep their shape, so that what is left is still an object of its kind.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from muster import yaml_files

LEFT_OUT = "<left out>"
"""Stands where a value was."""

ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "kapp.k14s.io/original",
        "kopf.zalando.org/last-handled-configuration",
        "objectset.rio.cattle.io/applied",
    }
)
"""Annotations that hold the object itself once more."""

_VALUED = frozenset({"env", "httpHeaders"})
_WORDS = frozenset({"command", "args"})


def is_secret(found: Mapping[str, Any]) -> bool:
    """Whether this is a Secret, or a reference to one as an event of mode Reference has it."""
    return found.get("kind") == "Secret" and found.get("apiVersion", "v1") == "v1"


def without_secrets(found: Any) -> Any:
    """The same without what can hold a secret; nothing of the argument is changed."""
    if isinstance(found, list):
        return [without_secrets(entry) for entry in found]
    if not isinstance(found, dict):
        return found
    dropped = {"data", "stringData"} if is_secret(found) else {"managedFields"}
    return {name: _cleaned(name, value) for name, value in found.items() if name not in dropped}


def of_runtime_snapshot(text: str) -> str:
    """The text in which the Trainer keeps a runtime, cleaned as the runtime itself is."""
    try:
        return json.dumps(without_secrets(yaml_files.load(text)))
    except (yaml.YAMLError, TypeError, ValueError):
        return LEFT_OUT


def _cleaned(name: str, value: Any) -> Any:
    if name == "annotations" and isinstance(value, dict):
        return {key: text for key, text in value.items() if key not in ANNOTATIONS}
    if name in _VALUED and isinstance(value, list):
        return [_valueless(entry) for entry in value]
    if name in _WORDS and isinstance(value, list):
        return [LEFT_OUT if isinstance(word, str) else without_secrets(word) for word in value]
    return without_secrets(value)


def _valueless(entry: Any) -> Any:
    """`{name, value}` without the value; what says where a value comes from stays."""
    if isinstance(entry, dict) and entry.get("value"):
        return {**entry, "value": LEFT_OUT}
    return entry

"""Helpers for Kubernetes objects as parsed JSON.

Stored objects are never changed in place: every writer works on a copy.
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object as parsed JSON."""

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names (`k8s.io/apimachinery/pkg/util/rand`)."""

MAX_GENERATED_BASE = 58
"""Characters of `generateName` that are used: 63 less the suffix (`k8s.io/apiserver/pkg/storage/names`)."""


def copied(value: Any) -> Any:
    """Return a deep copy of parsed JSON; several times faster than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def now() -> str:
    """Return the current time as `metav1.Time` prints it: UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def new_uid() -> str:
    """Return a fresh UID."""
    return str(uuid.uuid4())


def generated_name(base: str) -> str:
    """Return a name made from `generateName`: its first 58 characters and a random suffix of five."""
    return base[:MAX_GENERATED_BASE] + "".join(secrets.choice(ALPHABET) for _ in range(5))


def at(value: Any, *path: str | int) -> Any:
    """Return the value at a path of keys and list indexes; None if any step is missing."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def name_of(obj: Object) -> str:
    """`metadata.name`; empty if unset."""
    return str(at(obj, "metadata", "name") or "")


def namespace_of(obj: Object) -> str:
    """`metadata.namespace`; empty for cluster-scoped objects."""
    return str(at(obj, "metadata", "namespace") or "")


def uid_of(obj: Object) -> str:
    """`metadata.uid`; empty before the object is created."""
    return str(at(obj, "metadata", "uid") or "")


def by_name(items: Iterable[Object] | None, key: str = "name") -> dict[Any, Object]:
    """Return a list of objects as a mapping by one of their fields, the name by default."""
    return {item.get(key): item for item in items or ()}

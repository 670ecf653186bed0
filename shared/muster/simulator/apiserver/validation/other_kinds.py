"""Validation of PriorityClass, ConfigMap, Secret and Event.

Sources (v1.37.1): `pkg/apis/{scheduling,core}/validation`.
"""

from __future__ import annotations

import re

from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of
from muster.simulator.apiserver.refusals import FieldError, forbidden, immutable, invalid

MAX_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
CONFIG_KEY = r"[-._a-zA-Z0-9]+"


def new_priority_class(obj: Object) -> list[FieldError]:
    """Return the errors of a new PriorityClass."""
    name, value = name_of(obj), int(obj.get("value", 0))
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) == value:
            return []
        return [forbidden("metadata.name", f"{name} is not a known system priority class")]
    if value > MAX_USER_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        return [forbidden("value", why)]
    return []


def changed_priority_class(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated PriorityClass."""
    if new.get("value") != old.get("value"):
        return [forbidden("value", "may not be changed in an update.")]
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        return [immutable("preemptionPolicy", new.get("preemptionPolicy"))]
    return []


def config_map(obj: Object) -> list[FieldError]:
    """Return the errors of the keys of a ConfigMap or Secret."""
    why = f"a valid config key matches {CONFIG_KEY}"
    return [
        invalid(f"{field}[{key}]", key, why)
        for field in ("data", "binaryData")
        for key in obj.get(field) or {}
        if not re.fullmatch(CONFIG_KEY, key)
    ]


def changed_config_map(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated ConfigMap; if it is immutable, its data must not change."""
    frozen = ("immutable", "data", "binaryData") if old.get("immutable") else ()
    return config_map(new) + [
        forbidden(field, "field is immutable when `immutable` is set")
        for field in frozen
        if new.get(field) != old.get(field)
    ]


def event(obj: Object) -> list[FieldError]:
    """Return the errors of an Event of the core group (`pkg/apis/core/validation/events.go`)."""
    involved, namespace = at(obj, "involvedObject", "namespace") or "", namespace_of(obj)
    if involved == namespace if involved else namespace in {"default", ""}:
        return []
    return [invalid("involvedObject.namespace", involved, "does not match event.namespace")]

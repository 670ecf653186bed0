"""Validation of PriorityClass, ConfigMap, Secret, Event, MutatingAdmissionPolicy and its binding.

Sources (v1.37.1): `pkg/apis/{scheduling,core,admissionregistration}/validation/validation.go`.
"""

from __future__ import annotations

import re

from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of
from muster.simulator.apiserver.status import (
    FieldError,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from muster.simulator.apiserver.validation import names

MAX_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
CONFIG_KEY = r"[-._a-zA-Z0-9]+"


def new_priority_class(obj: Object) -> list[FieldError]:
    """Return the errors of a new PriorityClass."""
    errors: list[FieldError] = []
    name, value = name_of(obj), int(obj.get("value", 0))
    if name.startswith("system-"):
        if SYSTEM_CLASSES.get(name) != value:
            detail = (
                "priority class names with 'system-' prefix are reserved for system use only. "
                f"error: {name} is not a known system priority class"
            )
            errors.append(forbidden("metadata.name", detail))
    elif value > MAX_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        errors.append(forbidden("value", detail))
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in PREEMPTION_POLICIES:
        errors.append(not_supported("preemptionPolicy", policy, PREEMPTION_POLICIES))
    return errors


def changed_priority_class(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated PriorityClass."""
    errors: list[FieldError] = []
    if new.get("value") != old.get("value"):
        errors.append(forbidden("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        errors.append(immutable("preemptionPolicy", new.get("preemptionPolicy")))
    return errors


def new_config_map(obj: Object) -> list[FieldError]:
    """Return the errors of a ConfigMap."""
    message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    examples = "'key.name',  or 'KEY_NAME',  or 'key-name', "
    detail = f"{message} (e.g. {examples}regex used for validation is '{CONFIG_KEY}')"
    errors = [
        invalid(f"{field}[{key}]", key, detail)
        for field in ("data", "binaryData")
        for key in obj.get(field) or {}
        if not re.fullmatch(CONFIG_KEY, key)
    ]
    both = set(obj.get("data") or {}) & set(obj.get("binaryData") or {})
    errors += [invalid(f"data[{key}]", key, "duplicate of key present in binaryData") for key in sorted(both)]
    return errors


def changed_config_map(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated ConfigMap; if it is immutable, its data must not change."""
    errors = new_config_map(new)
    if old.get("immutable"):
        if not new.get("immutable"):
            errors.append(forbidden("immutable", "field is immutable when `immutable` is set"))
        errors += [
            forbidden(field, "field is immutable when `immutable` is set")
            for field in ("data", "binaryData")
            if new.get(field) != old.get(field)
        ]
    return errors


def new_secret(obj: Object) -> list[FieldError]:
    """Return the errors of a Secret; only the format of its keys is validated."""
    return new_config_map({"data": obj.get("data") or {}})


def changed_secret(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Secret."""
    errors = new_secret(new)
    if new.get("type") != old.get("type"):
        errors.append(immutable("type", new.get("type")))
    return errors


def new_event(obj: Object) -> list[FieldError]:
    """Return the errors of an Event of the core group (`pkg/apis/core/validation/events.go`)."""
    involved = at(obj, "involvedObject", "namespace") or ""
    namespace = namespace_of(obj)
    matches = involved == namespace if involved else namespace in {"default", ""}
    return (
        [] if matches else [invalid("involvedObject.namespace", involved, "does not match event.namespace")]
    )


def new_policy(obj: Object) -> list[FieldError]:
    """Return the errors of a MutatingAdmissionPolicy: missing required fields. CEL is not compiled."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    if not spec.get("matchConstraints"):
        errors.append(required("spec.matchConstraints"))
    elif not at(spec, "matchConstraints", "resourceRules"):
        errors.append(required("spec.matchConstraints.resourceRules"))
    if not spec.get("mutations"):
        errors.append(required("spec.mutations", "mutations must contain at least one item"))
    policy = spec.get("reinvocationPolicy")
    if not policy:
        errors.append(required("spec.reinvocationPolicy"))
    elif policy not in {"Never", "IfNeeded"}:
        errors.append(not_supported("spec.reinvocationPolicy", policy, ("IfNeeded", "Never")))
    return errors


def new_binding(obj: Object) -> list[FieldError]:
    """Return the errors of a MutatingAdmissionPolicyBinding."""
    name = at(obj, "spec", "policyName")
    if not name:
        return [required("spec.policyName")]
    return [invalid("spec.policyName", name, problem) for problem in names.dns_subdomain(name)]

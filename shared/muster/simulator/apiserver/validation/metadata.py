"""Validation of `metadata` and of conditions, for every kind.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validation/objectmeta.go`.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.kinds import SCHEDULING, Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.status import FieldError, forbidden, immutable, invalid, required, too_long
from muster.simulator.apiserver.validation import names

MAX_ANNOTATION_BYTES = 256 * 1024

DNS_LABEL_NAMED = frozenset({("", "namespaces")})
DNS_1035_NAMED = frozenset({("", "services")})
IMMUTABLE_FIELDS = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def name_check(kind: Kind) -> names.Check:
    """Return the format of the names of a kind."""
    if kind.group_resource in DNS_LABEL_NAMED:
        return names.with_characters(names.dns_label)
    if kind.group_resource in DNS_1035_NAMED:
        return names.with_characters(names.dns_1035_label)
    if kind.group == "rbac.authorization.k8s.io":
        return names.path_segment
    return names.with_characters(names.dns_subdomain)


def check_new(kind: Kind, obj: Object) -> list[FieldError]:
    """Return the errors in the metadata of a new object, whose name is already generated."""
    metadata = obj["metadata"]
    errors: list[FieldError] = []
    name, base = metadata.get("name", ""), metadata.get("generateName", "")
    check = name_check(kind)
    if base:
        masked = base[:-1] + "a" if base.endswith("-") else base
        errors += [invalid("metadata.generateName", base, problem) for problem in check(masked)]
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, problem) for problem in check(name)]
    return errors + _common(metadata) + _finalizers(metadata)


def check_changed(obj: Object, old: Object) -> list[FieldError]:
    """Return the errors in the metadata of an updated object."""
    metadata, old_metadata = obj["metadata"], old["metadata"]
    errors: list[FieldError] = []
    if old_metadata.get("deletionTimestamp"):
        added = sorted(set(metadata.get("finalizers") or ()) - set(old_metadata.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            errors.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{listed}}}",
                )
            )
    if not metadata.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    errors += [
        immutable(f"metadata.{field}", metadata.get(field, ""))
        for field in IMMUTABLE_FIELDS
        if metadata.get(field) != old_metadata.get(field)
    ]
    return errors + _common(metadata)


def _common(metadata: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        errors += [invalid("metadata.labels", key, problem) for problem in names.label_key(key)]
        errors += [invalid("metadata.labels", value, problem) for problem in names.label_value(value)]
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        errors += [invalid("metadata.annotations", key, problem) for problem in names.label_key(key.lower())]
    if (
        sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
        > MAX_ANNOTATION_BYTES
    ):
        errors.append(too_long("metadata.annotations", MAX_ANNOTATION_BYTES))
    return errors + _owners(metadata.get("ownerReferences") or [])


def _finalizers(metadata: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    finalizers = metadata.get("finalizers") or []
    for finalizer in finalizers:
        errors += [
            invalid("metadata.finalizers", finalizer, problem) for problem in names.label_key(finalizer)
        ]
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", finalizers, detail))
    return errors


def _owners(references: list[Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for index, reference in enumerate(references):
        path = f"metadata.ownerReferences[{index}]"
        errors += [
            required(f"{path}.{field}", "must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not reference.get(field)
        ]
        if (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Event"):
            errors.append(invalid(path, reference, "/v1, Kind=Event is disallowed from being an owner"))
        if reference.get("controller"):
            name = f"{reference.get('kind')}/{reference.get('name')}"
            if controller:
                errors.append(
                    invalid(
                        "metadata.ownerReferences",
                        references,
                        'Only one reference can have Controller set to true. Found "true" in references for '
                        f"{controller} and {name}",
                    )
                )
            controller = controller or name
    return errors


MAX_REASON_LENGTH = 1024
MAX_MESSAGE_LENGTH = 32 * 1024
STATUSES = ("False", "True", "Unknown")


def check_conditions(conditions: list[Object], path: str) -> list[FieldError]:
    """Return the errors of a list of `metav1.Condition` (`pkg/apis/meta/v1/validation/validation.go`)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        condition_path, condition_type = f"{path}[{index}]", condition.get("type", "")
        if condition_type in seen:
            errors.append(FieldError("FieldValueDuplicate", condition_path, "", condition_type))
        seen.add(condition_type)
        errors += _condition(condition, condition_path)
    return errors


def _condition(condition: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not condition.get("type"):
        errors.append(required(f"{path}.type", "is required"))
    else:
        problems = names.label_key(condition["type"])
        errors += [invalid(f"{path}.type", condition["type"], problem) for problem in problems]
    if not condition.get("status"):
        errors.append(required(f"{path}.status"))
    elif condition["status"] not in STATUSES:
        values = ", ".join(f'"{status}"' for status in STATUSES)
        detail = f"supported values: {values}"
        errors.append(FieldError("FieldValueNotSupported", f"{path}.status", detail, condition["status"]))
    if condition.get("observedGeneration", 0) < 0:
        value = condition["observedGeneration"]
        errors.append(invalid(f"{path}.observedGeneration", value, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errors.append(required(f"{path}.lastTransitionTime"))
    if not condition.get("reason"):
        errors.append(required(f"{path}.reason"))
    else:
        errors += [
            invalid(f"{path}.reason", condition["reason"], problem)
            for problem in names.condition_reason(condition["reason"])
        ]
        if len(condition["reason"]) > MAX_REASON_LENGTH:
            errors.append(too_long(f"{path}.reason", MAX_REASON_LENGTH))
    if len(condition.get("message", "")) > MAX_MESSAGE_LENGTH:
        errors.append(too_long(f"{path}.message", MAX_MESSAGE_LENGTH))
    return errors


def is_group_kind(kind: Kind) -> bool:
    """Whether the kind is Workload, PodGroup or CompositePodGroup, whose generation is never set."""
    return kind.group == SCHEDULING and kind.kind in {"Workload", "PodGroup", "CompositePodGroup"}


def generation_of(obj: Object) -> int:
    """`metadata.generation`; 0 if unset."""
    return int(at(obj, "metadata", "generation") or 0)

"""The rules of `metadata` that hold for every kind.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validation/objectmeta.go`.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.kinds import SCHEDULING, Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.status import FieldError, forbidden, immutable, invalid, required, too_long
from muster.simulator.apiserver.validation import names

ANNOTATIONS_LIMIT = 256 * 1024

LABEL_NAMED = frozenset({("", "namespaces")})
DNS_1035_NAMED = frozenset({("", "services")})
FROZEN = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def name_check(kind: Kind) -> names.Check:
    """The format of a kind's names."""
    if kind.storage in LABEL_NAMED:
        return names.of_objects(names.dns_label)
    if kind.storage in DNS_1035_NAMED:
        return names.of_objects(names.dns_1035_label)
    if kind.group == "rbac.authorization.k8s.io":
        return names.path_segment
    return names.of_objects(names.dns_subdomain)


def check_new(kind: Kind, obj: Object) -> list[FieldError]:
    """What is wrong with the metadata of an object about to be created, its name already generated."""
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
    """What is wrong with the metadata of a changed object."""
    metadata, before = obj["metadata"], old["metadata"]
    errors: list[FieldError] = []
    if before.get("deletionTimestamp"):
        extra = sorted(set(metadata.get("finalizers") or ()) - set(before.get("finalizers") or ()))
        if extra:
            listed = ", ".join(f'"{name}"' for name in extra)
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
        for field in FROZEN
        if metadata.get(field) != before.get(field)
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
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        errors.append(too_long("metadata.annotations", ANNOTATIONS_LIMIT))
    return errors + _owners(metadata.get("ownerReferences") or [])


def _finalizers(metadata: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    given = metadata.get("finalizers") or []
    for finalizer in given:
        errors += [
            invalid("metadata.finalizers", finalizer, problem) for problem in names.label_key(finalizer)
        ]
    if {"orphan", "foregroundDeletion"} <= set(given):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid("metadata.finalizers", given, detail))
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


REASON_LIMIT = 1024
MESSAGE_LIMIT = 32 * 1024
STATUSES = ("False", "True", "Unknown")


def check_conditions(conditions: list[Object], path: str) -> list[FieldError]:
    """What is wrong with a list of `metav1.Condition` (`pkg/apis/meta/v1/validation/validation.go`)."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        where = f"{path}[{index}]"
        kind = condition.get("type", "")
        if kind in seen:
            errors.append(FieldError("FieldValueDuplicate", where, "", kind))
        seen.add(kind)
        errors += _condition(condition, where)
    return errors


def _condition(condition: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not condition.get("type"):
        errors.append(required(f"{path}.type", "is required"))
    else:
        errors += [invalid(f"{path}.type", condition["type"], w) for w in names.label_key(condition["type"])]
    if not condition.get("status"):
        errors.append(required(f"{path}.status"))
    elif condition["status"] not in STATUSES:
        words = ", ".join(f'"{word}"' for word in STATUSES)
        detail = f"supported values: {words}"
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
            invalid(f"{path}.reason", condition["reason"], w)
            for w in names.condition_reason(condition["reason"])
        ]
        if len(condition["reason"]) > REASON_LIMIT:
            errors.append(too_long(f"{path}.reason", REASON_LIMIT))
    if len(condition.get("message", "")) > MESSAGE_LIMIT:
        errors.append(too_long(f"{path}.message", MESSAGE_LIMIT))
    return errors


def is_group_kind(kind: Kind) -> bool:
    """Whether this is one of the scheduling kinds whose generation is never set."""
    return kind.group == SCHEDULING and kind.kind in {"Workload", "PodGroup", "CompositePodGroup"}


def generation_of(obj: Object) -> int:
    """`metadata.generation`, 0 when there is none."""
    return int(at(obj, "metadata", "generation") or 0)

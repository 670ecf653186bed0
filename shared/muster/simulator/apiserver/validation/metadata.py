"""Validation of `metadata`, for every kind, and formats of names, label keys and label values.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validation/objectmeta.go` and `pkg/api/validate/content`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.kinds import SCHEDULING, Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.refusals import FieldError, invalid

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(?:\." + _LABEL + ")*+"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


@dataclass(frozen=True)
class Form:
    """The pattern of a text and its most characters."""

    pattern: str
    longest: int = 253


DNS_LABEL = Form(_LABEL, 63)
DNS_SUBDOMAIN = Form(_SUBDOMAIN)
PATH_SEGMENT = Form("[^/%]*")
LABEL_KEY = Form(f"({_SUBDOMAIN}/)?(?!.{{64}}){_KEY}", 317)
LABEL_VALUE = Form(f"({_KEY})?", 63)


def problems(field: str, text: str, form: Form) -> list[FieldError]:
    """Return the error of a field whose value is not well-formed."""
    if len(text.encode()) > form.longest:
        return [invalid(field, text, f"must be no more than {form.longest} characters")]
    if not re.fullmatch(form.pattern, text, re.ASCII):
        return [invalid(field, text, f"must match {form.pattern}")]
    return []


MAX_ANNOTATION_BYTES = 256 * 1024
IMMUTABLE_FIELDS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")


def check_new(kind: Kind, obj: Object) -> list[FieldError]:
    """Return the errors in the metadata of a new object, whose name is already generated."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    if not name:
        return [refusals.required("metadata.name", "name or generateName is required"), *_common(metadata)]
    form = DNS_LABEL if kind.kind == "Namespace" else DNS_SUBDOMAIN
    errors = problems("metadata.name", name, form)
    for finalizer in metadata.get("finalizers") or []:
        errors += problems("metadata.finalizers", finalizer, LABEL_KEY)
    return errors + _common(metadata)


def check_changed(obj: Object, old: Object) -> list[FieldError]:
    """Return the errors in the metadata of an updated object."""
    metadata, old_metadata = obj["metadata"], old["metadata"]
    errors = [
        refusals.immutable(f"metadata.{field}", metadata.get(field, ""))
        for field in IMMUTABLE_FIELDS
        if metadata.get(field) != old_metadata.get(field)
    ]
    added = set(metadata.get("finalizers") or ()) - set(old_metadata.get("finalizers") or ())
    if added and old_metadata.get("deletionTimestamp"):
        why = "no new finalizers can be added if the object is being deleted, found new finalizers "
        errors.append(refusals.forbidden("metadata.finalizers", why + ", ".join(sorted(added))))
    return errors + _common(metadata)


def _common(metadata: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        errors += problems("metadata.labels", key, LABEL_KEY)
        errors += problems("metadata.labels", value, LABEL_VALUE)
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        errors += problems("metadata.annotations", key.lower(), LABEL_KEY)
    if sum(len((key + value).encode()) for key, value in annotations.items()) > MAX_ANNOTATION_BYTES:
        errors.append(refusals.too_long("metadata.annotations", MAX_ANNOTATION_BYTES))
    references = metadata.get("ownerReferences") or []
    for index, reference in enumerate(references):
        errors += [
            refusals.required(f"metadata.ownerReferences[{index}].{field}", "must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not reference.get(field)
        ]
    if sum(bool(reference.get("controller")) for reference in references) > 1:
        why = "Only one reference can have Controller set to true"
        errors.append(refusals.invalid("metadata.ownerReferences", references, why))
    return errors


def is_group_kind(kind: Kind) -> bool:
    """Whether the kind is Workload, PodGroup or CompositePodGroup, whose generation is never set."""
    return kind.group == SCHEDULING and kind.kind in {"Workload", "PodGroup", "CompositePodGroup"}


def generation_of(obj: Object) -> int:
    """`metadata.generation`; 0 if unset."""
    return int(at(obj, "metadata", "generation") or 0)

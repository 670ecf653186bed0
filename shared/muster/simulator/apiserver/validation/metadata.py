"""Validation of `metadata`, for every kind.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validation/objectmeta.go`.
"""

from __future__ import annotations

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.kinds import SCHEDULING, Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.refusals import FieldError
from muster.simulator.apiserver.validation import names

MAX_ANNOTATION_BYTES = 256 * 1024
IMMUTABLE_FIELDS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp")


def check_new(kind: Kind, obj: Object) -> list[FieldError]:
    """Return the errors in the metadata of a new object, whose name is already generated."""
    metadata = obj["metadata"]
    name = metadata.get("name", "")
    if not name:
        return [refusals.required("metadata.name", "name or generateName is required"), *_common(metadata)]
    form = names.DNS_LABEL if kind.kind == "Namespace" else names.DNS_SUBDOMAIN
    errors = names.problems("metadata.name", name, form)
    for finalizer in metadata.get("finalizers") or []:
        errors += names.problems("metadata.finalizers", finalizer, names.LABEL_KEY)
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
        errors += names.problems("metadata.labels", key, names.LABEL_KEY)
        errors += names.problems("metadata.labels", value, names.LABEL_VALUE)
    annotations = metadata.get("annotations") or {}
    for key in annotations:
        errors += names.problems("metadata.annotations", key.lower(), names.LABEL_KEY)
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

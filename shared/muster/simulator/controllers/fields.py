"""Helpers that read and build common Kubernetes fields."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from muster.cluster.interface import Object

ObjectKey = tuple[str, str]
"""Namespace and name."""


def key_of(item: Object) -> ObjectKey:
    """Return namespace and name; the namespace of a cluster-scoped object is empty."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def timestamp(now: float) -> str:
    """Format seconds since the epoch as a metav1.Time."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def labels_of(item: Object) -> dict[str, str]:
    """Return the labels; empty if unset."""
    return item["metadata"].get("labels") or {}


def annotations_of(item: Object) -> dict[str, str]:
    """Return the annotations; empty if unset."""
    return item["metadata"].get("annotations") or {}


def controller_of(item: Object) -> Object | None:
    """Return the owner reference with `controller: true`, or None (metav1.GetControllerOf)."""
    owners: list[Object] = item["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def controller_reference(owner: Object) -> Object:
    """Return the owner reference that a controller sets on objects it creates (metav1.NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_deleting(item: Object) -> bool:
    """Whether `metadata.deletionTimestamp` is set."""
    return bool(item["metadata"].get("deletionTimestamp"))


def phase(pod: Object) -> str:
    """`status.phase`; Pending if unset."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished_pod(pod: Object) -> bool:
    """Whether the phase is Succeeded or Failed."""
    return phase(pod) in ("Succeeded", "Failed")


def node_of(pod: Object) -> str:
    """Return the node that the pod is bound to; empty if unbound."""
    return str(pod["spec"].get("nodeName") or "")


def condition(conditions: Iterable[Object] | None, kind: str) -> Object | None:
    """Return the condition of a type, or None."""
    return next((entry for entry in conditions or () if entry["type"] == kind), None)


def is_true(conditions: Iterable[Object] | None, kind: str) -> bool:
    """Whether the condition of a type exists with status True."""
    entry = condition(conditions, kind)
    return entry is not None and entry["status"] == "True"


def with_condition(conditions: Iterable[Object] | None, new: Object, now: float) -> list[Object]:
    """Return the conditions with one added or updated, as meta.SetStatusCondition does."""
    result: list[Object] = []
    replaced = False
    for entry in conditions or ():
        if entry["type"] != new["type"]:
            result.append(entry)
            continue
        replaced = True
        since = timestamp(now) if entry["status"] != new["status"] else entry["lastTransitionTime"]
        result.append({**entry, **new, "lastTransitionTime": since})
    return result if replaced else [*result, {**new, "lastTransitionTime": timestamp(now)}]


def without_condition(conditions: Iterable[Object] | None, kind: str) -> list[Object]:
    """Return the conditions except the one of this type."""
    return [entry for entry in conditions or () if entry["type"] != kind]

"""Small readers and builders of Kubernetes fields that every simulated controller needs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from muster.cluster.port import Object

Key = tuple[str, str]
"""Namespace and name."""


def key_of(item: Object) -> Key:
    """Namespace and name of an object; the namespace of a cluster-scoped one is empty."""
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def timestamp(now: float) -> str:
    """Seconds since the epoch as metav1.Time spells them."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(text: str) -> float:
    """A metav1.Time as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def labels_of(item: Object) -> dict[str, str]:
    """The labels, also of an object that has none."""
    return item["metadata"].get("labels") or {}


def annotations_of(item: Object) -> dict[str, str]:
    """The annotations, also of an object that has none."""
    return item["metadata"].get("annotations") or {}


def controller_of(item: Object) -> Object | None:
    """The owner reference that is marked as the controller, if there is one."""
    for reference in item["metadata"].get("ownerReferences") or []:
        if reference.get("controller"):
            found: Object = reference
            return found
    return None


def controller_reference(owner: Object) -> Object:
    """The owner reference a controller puts on what it makes (metav1.NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_deleting(item: Object) -> bool:
    """Whether deletion was asked for."""
    return bool(item["metadata"].get("deletionTimestamp"))


def phase(pod: Object) -> str:
    """`status.phase`; a pod that was just created is Pending."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished_pod(pod: Object) -> bool:
    """Whether the pod has run: Succeeded or Failed."""
    return phase(pod) in ("Succeeded", "Failed")


def node_of(pod: Object) -> str:
    """The node the pod is bound to; empty while it is not."""
    return str(pod["spec"].get("nodeName") or "")


def condition(conditions: Iterable[Object] | None, kind: str) -> Object | None:
    """The condition of a type, or None."""
    return next((entry for entry in conditions or () if entry["type"] == kind), None)


def is_true(conditions: Iterable[Object] | None, kind: str) -> bool:
    """Whether the condition of this type is there and True."""
    found = condition(conditions, kind)
    return found is not None and found["status"] == "True"


def with_condition(conditions: Iterable[Object] | None, new: Object, now: float) -> list[Object]:
    """The conditions with one set, as meta.SetStatusCondition does: its time moves with its status only."""
    result: list[Object] = []
    found = False
    for entry in conditions or ():
        if entry["type"] != new["type"]:
            result.append(entry)
            continue
        found = True
        since = timestamp(now) if entry["status"] != new["status"] else entry["lastTransitionTime"]
        result.append({**entry, **new, "lastTransitionTime": since})
    return result if found else [*result, {**new, "lastTransitionTime": timestamp(now)}]


def without_condition(conditions: Iterable[Object] | None, kind: str) -> list[Object]:
    """The conditions but the one of this type."""
    return [entry for entry in conditions or () if entry["type"] != kind]

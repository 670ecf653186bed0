"""Labels and owner references of the objects that Muster makes for an owner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.objects.meta import ObjectRef

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
OWNER_UID = "muster.dev/owner-uid"


def is_musters(labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels was made by Muster."""
    return labels.get(MANAGED_BY) == MUSTER


def belongs_to(labels: Mapping[str, str], owner_uid: str) -> bool:
    """Whether Muster made an object with these labels for the owner of that UID."""
    return is_musters(labels) and labels.get(OWNER_UID) == owner_uid


def owner_labels(root: ObjectRef) -> dict[str, str]:
    """The labels of everything that Muster creates for an owner."""
    return {MANAGED_BY: MUSTER, OWNER_UID: root.uid}


def controller_reference(root: ObjectRef) -> dict[str, Any]:
    """The ownerReference to the root owner as controller."""
    return {
        "apiVersion": root.api_version,
        "kind": root.kind,
        "name": root.name,
        "uid": root.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }

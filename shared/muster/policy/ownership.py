"""The labels by which Muster knows the objects it made, and for which owner."""

from __future__ import annotations

from collections.abc import Mapping

MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
OWNER_UID = "muster.dev/owner-uid"


def is_musters(labels: Mapping[str, str]) -> bool:
    """Whether an object with these labels was made by Muster."""
    return labels.get(MANAGED_BY) == MUSTER


def belongs_to(labels: Mapping[str, str], owner_uid: str) -> bool:
    """Whether Muster made an object with these labels for the owner of that UID."""
    return is_musters(labels) and labels.get(OWNER_UID) == owner_uid

"""What is left behind when an owner goes without its dependents, and may be removed.

A batch/v1 Job is deleted with propagation policy Orphan unless the client says otherwise, which strips the
owner references of everything Muster made for it (pkg/registry/batch/job/strategy.go, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from muster.objects.scheduling import CompositePodGroup, PodGroup, Workload
from muster.policy import bodies
from muster.policy.model import Action, Decision, Nothing, Plan, Verb
from muster.policy.names import UID_CHARACTERS
from muster.policy.reasons import Reason

Orphan = Workload | CompositePodGroup | PodGroup
"""What Muster makes for owners."""

_NAMED_AFTER = {"TrainJob": ("TrainJob", "JobSet"), "JobSet": ("JobSet",), "Job": ("Job",)}
"""Kinds of which something has to live for what an owner of a kind has."""


def plan_orphan(found: Orphan, live_uids: frozenset[str]) -> Decision:
    """Remove a Workload or group of Muster's if nothing it was made for exists.

    Args:
        found: the object, live.
        live_uids: of all TrainJobs, JobSets and Jobs of its namespace, by `living`.
    """
    if not bodies.is_musters(found.metadata.labels):
        return Nothing(Reason.NOT_MUSTERS, f"{found.ref} was not made by Muster")
    if found.being_deleted or not is_orphan(found, live_uids):
        return Nothing(Reason.UP_TO_DATE, f"{found.ref} is in use or on its way out")
    delete = Action(Verb.DELETE, replace(found.ref, uid=found.metadata.uid))
    return Plan(Reason.ORPHANS_REMOVED, f"{found.ref}: its owner is gone or was rebuilt", (delete,))


def living(uids: Iterable[str]) -> frozenset[str]:
    """UIDs of owners, whole as labels have them and cut as names of groups do."""
    whole = frozenset(uids)
    return whole | {uid[:UID_CHARACTERS] for uid in whole}


def is_orphan(found: Orphan, live_uids: frozenset[str]) -> bool:
    """Whether the owner is gone; for a group also whether the JobSet it is named after was rebuilt."""
    if found.metadata.labels.get(bodies.OWNER_UID) not in live_uids:
        return True
    if isinstance(found, Workload):
        return False
    return live_uids.isdisjoint(found.metadata.name.split("-"))


def owner_is_out_of_sight(found: Orphan, not_served: Collection[str]) -> bool:
    """Whether nobody can tell if its owner lives, as after an upgrade that no longer serves a version.

    Where the owner was deleted and left it behind, the reference is gone, too.

    Args:
        found: the object.
        not_served: kinds of owners that cannot be listed.
    """
    controller = found.metadata.controller
    return controller is not None and any(
        kind in not_served for kind in _NAMED_AFTER.get(controller.kind, ())
    )

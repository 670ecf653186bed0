"""Objects that an owner left behind: a Job is deleted with propagation policy Orphan by default."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import JOBS, WORKLOADS
from muster.policy.group_labels import OWNER_UID, UID_CHARACTERS, is_musters
from muster.policy.model import Action, Decision, NoOp, Plan, Verb
from muster.policy.owners import kind_of, runs_as
from muster.policy.reasons import Reason


@dataclass(frozen=True)
class OrphanInputs:
    """An object whose owner may be gone."""

    object: KubernetesObject
    live_uids: frozenset[str]

    @property
    def subject(self) -> ObjectRef:
        """The object."""
        return self.object.ref


def plan_orphan(inputs: OrphanInputs) -> Decision:
    """Delete a Workload or group of Muster if its owner is gone or was rebuilt."""
    orphan = inputs.object
    if not is_musters(orphan.metadata.labels):
        return NoOp(Reason.NOT_MUSTERS, f"{orphan.ref} was not made by Muster")
    if orphan.being_deleted or not is_orphan(orphan, inputs.live_uids):
        return NoOp(Reason.UP_TO_DATE, f"{orphan.ref} is in use or being deleted")
    message = f"{orphan.ref}: its owner was deleted or created again"
    return Plan(Reason.ORPHANS_REMOVED, message, (Action(Verb.DELETE, orphan.ref),))


def owner_uids(uids: Iterable[str]) -> frozenset[str]:
    """Return UIDs of owners, in full as in labels and cut to 8 characters as in names of groups."""
    full = frozenset(uids)
    return full | {uid[:UID_CHARACTERS] for uid in full}


def is_orphan(created: KubernetesObject, live_uids: frozenset[str]) -> bool:
    """Whether the owner is gone; for a group also whether the JobSet it is named after was rebuilt."""
    if created.metadata.labels.get(OWNER_UID) not in live_uids:
        return True
    controller = created.metadata.controller
    if created.kind == WORKLOADS.kind or (controller is not None and controller.kind == JOBS.kind):
        return False
    return live_uids.isdisjoint(created.metadata.name.split("-"))


def owner_is_unknown(created: KubernetesObject, not_served: Collection[str]) -> bool:
    """Whether the owner's kind cannot be listed, as after an upgrade that dropped a version."""
    controller = created.metadata.controller
    kind = None if controller is None else kind_of(controller)
    return kind is not None and not {kind.resource.kind, runs_as(kind).resource.kind}.isdisjoint(not_served)

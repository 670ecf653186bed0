"""Event predicates: the object to look at, or the reason to do nothing, from the event alone.

Whoever sends an event decides what is in it, so predicates read its object through typed views only: a field
of a wrong type is a ValidationError, which the runtime answers with 400 and the field's path.
"""

from __future__ import annotations

from muster.events.parse import Happened, ResourceEvent
from muster.objects.meta import ObjectRef, find_condition, is_true
from muster.objects.resources import is_known
from muster.policy.model import NoOp
from muster.policy.owners import kind_of, known_kind_of, parent_of
from muster.policy.owners.job import CONDITION_PREFIX, Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.status.conditions import SCHEDULED

ADD, UPDATE = Happened.ADD, Happened.UPDATE


def not_for_step(event: ResourceEvent, **accepted: set[Happened]) -> NoOp | None:
    """Return None if the event is accepted, else NotForThisStep; `accepted` is by kind: `Job={ADD, UPDATE}`.

    Other projects have a Job, a Workload and a PodGroup too, in other API groups.
    """
    known = is_known(event.ref.api_version, event.ref.kind)
    if known and event.happened in accepted.get(event.ref.kind, set()):
        return None
    return NoOp(Reason.NOT_FOR_THIS_STEP, f"{event.ref} {event.happened}")


def owner_in(event: ResourceEvent) -> OwnerObject | None:
    """Return the owner in an event; None if it has no object, or is about no owner."""
    kind = kind_of(event.ref)
    return None if event.object is None or kind is None else kind.view.read(event.object)


def owner_to_group(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return the owner in the event, unless its own fields show that it gets no groups of its own."""
    owner = owner_in(event)
    if owner is None:
        return event.ref
    kind = known_kind_of(owner)
    if owner.being_deleted:
        return NoOp(Reason.DELETED, f"{owner.ref} is being deleted")
    if owner.finished:
        return NoOp(Reason.FINISHED, f"{owner.ref} has ended")
    parent = parent_of(owner) if kind.is_job else None
    if parent is not None:
        message = f"{owner.ref} is grouped with {parent.kind} {parent.name}"
        return NoOp(Reason.NOT_FOR_THIS_STEP, message)
    return kind.skip_event(owner) or event.ref


def resized(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return the Job or JobSet in the event; a NoOp if its own fields show that its groups need no change."""
    owner = owner_in(event)
    skipped = None if owner is None else known_kind_of(owner).skip_event(owner)
    if skipped or owner is None or owner.finished or not owner.has_original_size:
        return skipped or event.ref  # the groups of one that has ended go
    return NoOp(Reason.UP_TO_DATE, f"{event.ref} has the size that it was created with")


def stopped_or_started(event: ResourceEvent) -> bool:
    """Whether a Job or JobSet is or was suspended, was restarted, has failed, lacks pods, or runs unreported.

    Unreported is a Job whose pods are ready before its PodGroup was said to be placed: a scheduler without
    the feature gates binds them one by one, and writes nothing on the PodGroup.
    """
    owner = owner_in(event)
    if owner is None:
        return True
    kind, conditions = known_kind_of(owner), owner.status.conditions
    if kind.skip_event(owner) or (owner.finished and not kind.is_job):
        return False
    if owner.spec.suspend or is_true(conditions, "Failed"):
        return True
    if isinstance(owner, Job):
        status, wanted = owner.status, owner.spec.parallelism
        lacks_pods = status.active + status.succeeded < min(wanted, owner.spec.completions or wanted)
        if owner.lost_pods or owner.restarted or lacks_pods:
            return True
        if status.ready + status.succeeded >= wanted and owner.metadata.controller is None:
            return not is_true(conditions, f"{CONDITION_PREFIX}{SCHEDULED}")
    restarted = isinstance(owner, JobSet) and owner.status.restarts > 0
    return restarted or find_condition(conditions, "Suspended") is not None

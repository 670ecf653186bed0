"""Which object an event is about for a step, and what the event alone tells to do nothing.

Most events matter to nobody: a pod's life is an add, six to eight updates and a delete. In Resource mode the
object in the event is enough to answer them without a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.events.model import Happened, ResourceEvent
from muster.objects.jobs import Job, JobSet, Pod, TrainJob
from muster.objects.meta import ObjectRef, is_true
from muster.objects.resources import by_kind
from muster.policy import marks
from muster.policy.model import Nothing
from muster.policy.reasons import Reason
from muster.policy.runtimes import settled

_ADD, _UPDATE = Happened.ADD, Happened.UPDATE
_VIEWS: dict[str, type[TrainJob | JobSet | Job]] = {
    "TrainJob": TrainJob,
    "JobSet": JobSet,
    "Job": Job,
}


def of_create_workload(event: ResourceEvent) -> ObjectRef | Nothing:
    """TrainJob add and update, JobSet add, Job add."""
    return _foreign(event, {"TrainJob": {_ADD, _UPDATE}, "JobSet": {_ADD}, "Job": {_ADD}}) or _owner(event)


def of_create_pod_groups(event: ResourceEvent) -> ObjectRef | Nothing:
    """Workload add; JobSet and Job add, for an owner whose Workload was there before it.

    Not Job update: it does not tell whether the Job grew by a block of indexes, and to look would cost five
    reads and more at every change of its status. A sweep makes the groups of new blocks.
    """
    foreign = _foreign(event, {"Workload": {_ADD}, "JobSet": {_ADD}, "Job": {_ADD}})
    return foreign or (event.ref if event.ref.kind == "Workload" else _owner(event))


def of_patch_pods(event: ResourceEvent) -> ObjectRef | Nothing:
    """PodGroup add and update, Pod add; CompositePodGroup add, for one that took another one's place."""
    heard = {"PodGroup": {_ADD, _UPDATE}, "CompositePodGroup": {_ADD}, "Pod": {_ADD}}
    foreign = _foreign(event, heard)
    if foreign is not None or event.object is None or event.ref.kind != "Pod":
        return foreign or event.ref
    if marks.GATE not in Pod.read(event.object).gates:
        return Nothing(Reason.UP_TO_DATE, f"{event.ref} does not have Muster's gate")
    return event.ref


def of_resize_gang(event: ResourceEvent) -> ObjectRef | Nothing:
    """Job and JobSet update."""
    return _foreign(event, {"Job": {_UPDATE}, "JobSet": {_UPDATE}}) or _member(event)


def of_emit_conditions(event: ResourceEvent) -> ObjectRef | Nothing:
    """PodGroup add and update; Job and JobSet updates that tell of a stop, a start or a restart."""
    heard = {"PodGroup": {_ADD, _UPDATE}, "Job": {_UPDATE}, "JobSet": {_UPDATE}}
    foreign = _foreign(event, heard)
    if foreign is not None or event.object is None or event.ref.kind == "PodGroup":
        return foreign or event.ref
    if not _turned(event.object):
        return Nothing(Reason.UP_TO_DATE, f"{event.ref} neither stopped nor started")
    return _member(event)


def of_mark_runtime(event: ResourceEvent) -> ObjectRef | Nothing:
    """TrainingRuntime and ClusterTrainingRuntime add and update, unless nothing is left to do there."""
    heard = {"TrainingRuntime": {_ADD, _UPDATE}, "ClusterTrainingRuntime": {_ADD, _UPDATE}}
    foreign = _foreign(event, heard)
    if foreign is not None or event.object is None:
        return foreign or event.ref
    return settled(event.object) or event.ref


def _foreign(event: ResourceEvent, heard: Mapping[str, set[Happened]]) -> Nothing | None:
    """Other API groups have a Job, a Workload and a PodGroup too (Volcano, Kueue, coscheduling, KAI)."""
    try:
        known = by_kind(event.ref.api_version, event.ref.kind).kind
    except LookupError:
        known = ""
    if event.happened in heard.get(known, set()):
        return None
    return Nothing(Reason.NOT_FOR_THIS_STEP, f"{event.ref} {event.happened}")


def _owner(event: ResourceEvent) -> ObjectRef | Nothing:
    """The event's object as an owner to look at, unless its own fields rule it out."""
    view = _VIEWS.get(event.ref.kind)
    if event.object is None or view is None:
        return event.ref
    owner = view.read(event.object)
    if owner.being_deleted:
        return Nothing(Reason.DELETED, f"{owner.ref} is being deleted")
    if owner.finished:
        return Nothing(Reason.FINISHED, f"{owner.ref} has ended")
    controller = owner.metadata.controller
    if isinstance(owner, Job) and controller is not None and controller.kind == "JobSet":
        return Nothing(Reason.OWNED_BY_ANOTHER, f"{owner.ref} is grouped with JobSet {controller.name}")
    if isinstance(owner, Job) and not _marked(owner):
        return Nothing(Reason.NOT_MARKED, f"{owner.ref}: the pod template is not marked")
    return event.ref


def _member(event: ResourceEvent) -> ObjectRef | Nothing:
    """The event's Job or JobSet, unless its own fields show that no group of its can change."""
    if event.object is None:
        return event.ref
    owner = _VIEWS[event.ref.kind].read(event.object)
    if isinstance(owner, Job) and not _marked(owner):
        return Nothing(Reason.NOT_MARKED, f"{owner.ref}: the pod template is not marked")
    if owner.finished and not isinstance(owner, Job):
        return Nothing(Reason.FINISHED, f"{owner.ref} has ended")
    return event.ref


def _marked(job: Job) -> bool:
    """Whether the stored template has a mark: where mark-jobs acts, it wrote one at the Job's creation."""
    return marks.read_mark(job.spec.template.metadata.labels) is not None


def _turned(body: Mapping[str, Any]) -> bool:
    """Whether a Job or JobSet is or was suspended, was restarted, or has all its pods running."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    conditions = status.get("conditions") or []
    stopped = bool(spec.get("suspend")) or any(one.get("type") == "Suspended" for one in conditions)
    running = (status.get("ready") or 0) + (status.get("succeeded") or 0) >= spec.get("parallelism", 1 << 30)
    return stopped or bool(status.get("restarts")) or running or is_true(conditions, "Failed")

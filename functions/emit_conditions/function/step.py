"""A PodGroup is made, placed or refused: the owner gets conditions and Events that say so."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from muster.cluster import execute, permissions
from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.cluster.observe.members import failed_create, read_members
from muster.cluster.observe.owner import read_owner
from muster.cluster.permissions import may
from muster.events.model import ResourceEvent
from muster.events.predicates import ADD, UPDATE, grouped_owner, not_for_step, owner_in, stopped_or_started
from muster.objects.meta import ObjectRef
from muster.objects.resources import EVENTS, POD_GROUPS, PODS, PRIORITY_CLASSES
from muster.policy.model import NoOp
from muster.policy.plans.emit_conditions import ConditionInputs, nothing_to_report, plan_conditions
from muster.policy.reasons import Reason
from muster.policy.tree.members import LiveMembers
from muster.runtime.step import Step


@dataclass(frozen=True)
class AddedGroup(ObjectRef):
    """A PodGroup that was added: updates of it follow, the first when the scheduler answers."""


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """PodGroup add and update; Job and JobSet update at a suspension, a resumption, a restart or a loss."""
    skipped = not_for_step(event, PodGroup={ADD, UPDATE}, Job={UPDATE}, JobSet={UPDATE})
    ref = event.ref
    if skipped is not None:
        return skipped
    if ref.kind == POD_GROUPS.kind and event.happened == ADD:
        return AddedGroup(ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid)
    if event.object is None or ref.kind == POD_GROUPS.kind:
        return ref
    owner = owner_in(event)
    if owner is not None and not stopped_or_started(owner):
        return NoOp(Reason.UP_TO_DATE, f"{ref} neither stopped nor started")
    return grouped_owner(event, owner)


def observe(cluster: Cluster, subject: ObjectRef) -> ConditionInputs:
    """Return the owner, its Jobs, pods and groups; while pods are missing, also why none could be created."""
    nothing_new = partial(nothing_to_report, added=isinstance(subject, AddedGroup))
    live, resolved = read_owner(cluster, subject, classes=True, skip=nothing_new)
    if isinstance(resolved, NoOp):
        return ConditionInputs(subject, resolved, LiveMembers())
    members = read_members(cluster, live, resolved)
    missing = len(members.pods) < sum(job.spec.parallelism for job in members.jobs)
    message = failed_create(cluster, members.jobs) if missing else ""
    return ConditionInputs(subject, resolved, members, message)


STEP = Step(
    name="emit_conditions",
    predicate=predicate,
    observe=observe,
    plan=plan_conditions,
    execute=execute.in_order,
    swept=sweep.owners,
    lists=(
        sweep.ALL_PODS,
        *sweep.groups_and_owners(),
        sweep.Listing(EVENTS, fields="reason=FailedCreate"),
    ),
    permissions=permissions.READ_OWNERS
    | permissions.READ_COMPOSITES
    | permissions.REPORT_TO_OWNERS
    | may("list", PODS, EVENTS, PRIORITY_CLASSES),
)

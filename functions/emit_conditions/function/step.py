"""A PodGroup is made, placed or refused: the owner gets conditions and Events that say so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from muster.cluster import execute, permissions
from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.cluster.observe.gathered import GatheredGroup, gathered_groups, read_group_and_pods
from muster.cluster.observe.members import failed_create, groups_beside, read_members
from muster.cluster.observe.owner import read_chain, read_owner
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent, owner_of
from muster.events.predicates import UPDATE, not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.resources import EVENTS, POD_GROUPS, PODS, PRIORITY_CLASSES
from muster.objects.scheduling import ManagedPodGroup, PodGroup
from muster.policy.group_labels import is_gathered
from muster.policy.groups.gathered import GatheredPods
from muster.policy.model import Decision, NoOp
from muster.policy.plans.emit_conditions import (
    ConditionInputs,
    PlacedInputs,
    nothing_to_report,
    plan_conditions,
)
from muster.policy.plans.tell_gang import plan_telling
from muster.policy.status.owner_status import placed_status
from muster.policy.tree.members import LiveMembers
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """PodGroup update; Jobs and JobSets that stop, start or lose pods have reply events of resize_gang."""
    ref = event.ref
    skipped = not_for_step(event, PodGroup={UPDATE})
    if skipped is None and event.object and is_gathered(PodGroup.read(event.object).metadata.labels):
        return GatheredGroup(ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid)
    return skipped or ref


def observe(cluster: Cluster, subject: ObjectRef) -> ConditionInputs | PlacedInputs | GatheredPods:
    """Return the owner with its status if its groups tell it; else with its Jobs, pods and groups.

    While pods or Jobs are missing, also why none could be created. Of a gathered PodGroup, its pods.
    """
    if isinstance(subject, GatheredGroup):
        return read_group_and_pods(cluster, subject)
    chain = read_chain(cluster, subject)
    if isinstance(chain.subject, ManagedPodGroup) and chain.root is not None and chain.subject.placed:
        skipped = nothing_to_report(chain.subject, chain.root, chain.runner)
        if skipped is not None:
            return ConditionInputs(skipped, LiveMembers())
        status = placed_status(chain.root, chain.runner, groups_beside(cluster, chain.subject))
        if status is not None:
            return PlacedInputs(chain.root, status)
    live, resolved = read_owner(cluster, subject, classes=True, chain=chain)
    if isinstance(resolved, NoOp):
        return ConditionInputs(resolved, LiveMembers())
    members = read_members(cluster, live, resolved)
    return ConditionInputs(resolved, members, failed_create(cluster, resolved, members))


def plan(inputs: ConditionInputs | PlacedInputs | GatheredPods, now: datetime) -> Decision:
    """Return the conditions and Events of an owner, or the Event about other pods."""
    return plan_telling(inputs, now) if isinstance(inputs, GatheredPods) else plan_conditions(inputs, now)


def swept(cluster: Cluster, namespace: str) -> Iterator[ObjectRef]:
    """Yield the root owners of a namespace, and the PodGroups of pods of other controllers."""
    yield from sweep.owners(cluster, namespace)
    if cluster.scheduling().served:
        yield from gathered_groups(cluster, namespace)


STEP = Step(
    name="emit_conditions",
    predicate=predicate,
    observe=observe,
    plan=plan,
    execute=execute.in_order,
    other_events=owner_of,
    swept=swept,
    lists=(sweep.ALL_PODS, *sweep.groups_and_owners()),
    permissions=permissions.READ_OWNERS
    | permissions.READ_COMPOSITES
    | permissions.REPORT_TO_OWNERS
    | may("list", PODS, EVENTS, PRIORITY_CLASSES)
    | may("patch", POD_GROUPS),
)

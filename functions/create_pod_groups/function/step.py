"""A Workload appears: its templates become the PodGroups that pods are stamped with."""

from __future__ import annotations

from muster.cluster import execute, permissions
from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.cluster.observe.members import read_groups
from muster.cluster.observe.owner import read_owner
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent, owner_of
from muster.events.predicates import ADD, not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS
from muster.policy.model import NoOp
from muster.policy.plans.create_pod_groups import as_executed, plan_pod_groups
from muster.policy.resolve import OwnerGroups
from muster.policy.tree.members import LiveMembers
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Workload add, of a user's own; create_workload and resize_gang reply where groups are missing."""
    return not_for_step(event, Workload={ADD}) or event.ref


def observe(cluster: Cluster, subject: ObjectRef) -> OwnerGroups:
    """Return the owner, its Jobs, and the groups that exist."""
    live, resolved = read_owner(cluster, subject, by_workload=True)
    if isinstance(resolved, NoOp) or not live.workloads:
        return OwnerGroups(resolved, LiveMembers())
    return OwnerGroups(resolved, read_groups(cluster, resolved))


STEP = Step(
    name="create_pod_groups",
    predicate=predicate,
    observe=observe,
    plan=plan_pod_groups,
    execute=execute.in_order_then(as_executed),
    other_events=owner_of,
    swept=sweep.owners,
    lists=sweep.groups_and_owners(),
    permissions=permissions.READ_OWNERS
    | permissions.READ_COMPOSITES
    | may("create", POD_GROUPS, EVENTS)
    | may("create", COMPOSITE_POD_GROUPS),
)

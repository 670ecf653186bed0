"""A JobSet or Job appears: its groups, or those of its TrainJob, become a Workload."""

from __future__ import annotations

from dataclasses import replace

from muster.cluster import execute, permissions
from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.cluster.observe.members import pod_groups, pods_of
from muster.cluster.observe.owner import read_owner
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent
from muster.events.predicates import ADD, not_for_step, owner_to_group
from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS
from muster.policy.model import NoOp
from muster.policy.plans.create_workload import WorkloadInputs, as_executed, needs_members, plan_workload
from muster.policy.plans.orphans import OrphanInputs
from muster.policy.tree.members import LiveMembers
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return the added JobSet or Job; a TrainJob is grouped when its JobSet appears."""
    return not_for_step(event, JobSet={ADD}, Job={ADD}) or owner_to_group(event)


def observe(cluster: Cluster, subject: ObjectRef) -> WorkloadInputs | OrphanInputs:
    """Return the owner and its groups; with pods and PodGroups if fallback PodGroups may be needed."""
    if isinstance(subject, sweep.PossibleOrphan) and (orphan := sweep.read_orphan(cluster, subject)):
        return orphan
    live, resolved = read_owner(cluster, subject, to_create=True)
    inputs = WorkloadInputs(live, resolved)
    if not needs_members(inputs):
        return inputs
    pods = pods_of(cluster, live)
    groups = pod_groups(cluster, live, resolved, pods)
    return replace(inputs, members=LiveMembers(pods=pods, groups=groups))


STEP = Step(
    name="create_workload",
    predicate=predicate,
    observe=observe,
    plan=plan_workload,
    execute=execute.in_order_then(as_executed),
    swept=sweep.owners_and_orphans,
    lists=(sweep.WAITING_PODS, *sweep.groups_and_owners()),
    permissions=permissions.READ_OWNERS
    | permissions.REPORT_TO_OWNERS
    | permissions.READ_COMPOSITES
    | may("list", PODS, PRIORITY_CLASSES)
    | may("create delete", WORKLOADS, POD_GROUPS)
    | may("delete", COMPOSITE_POD_GROUPS),
)

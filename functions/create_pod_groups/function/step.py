"""A Workload appears: its templates become the PodGroups that pods are stamped with."""

from __future__ import annotations

from muster.cluster import execute, observe, permissions, sweep
from muster.cluster.permissions import may
from muster.cluster.port import Cluster
from muster.events import subjects
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS
from muster.policy.model import Plan
from muster.policy.pod_groups import naming_created, plan_pod_groups
from muster.runtime.step import Step


def create(cluster: Cluster, plan: Plan, manager: str) -> Plan:
    """Carry the plan out; the reply then names what was really created."""
    return naming_created(execute.in_order(cluster, plan, manager))


STEP = Step(
    name="create_pod_groups",
    subject=subjects.of_create_pod_groups,
    observe=observe.for_pod_groups,
    plan=plan_pod_groups,
    execute=create,
    responsible_for=sweep.owners,
    lists=sweep.FOR_POD_GROUPS,
    permissions=permissions.READ_GROUPS
    | permissions.READ_GROUPS_ABOVE
    | may("create", POD_GROUPS, EVENTS)
    | may("list create", COMPOSITE_POD_GROUPS),
)

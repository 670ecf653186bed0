"""A Workload appears: its templates become the PodGroups that pods are stamped with."""

from __future__ import annotations

from shared.cluster import execute, observe, permissions, sweep
from shared.cluster.permissions import may
from shared.events import subjects
from shared.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS
from shared.policy.pod_groups import plan_pod_groups
from shared.runtime.step import Step

STEP = Step(
    name="create_pod_groups",
    subject=subjects.of_create_pod_groups,
    observe=observe.for_pod_groups,
    plan=plan_pod_groups,
    execute=execute.in_order,
    responsible_for=sweep.owners,
    lists=sweep.FOR_POD_GROUPS,
    permissions=permissions.READ_GROUPS
    | may("create", POD_GROUPS, EVENTS)
    | may("list create", COMPOSITE_POD_GROUPS),
)

"""A TrainJob, JobSet or Job appears: its groups become a Workload."""

from __future__ import annotations

from muster.cluster import execute, observe, permissions, sweep
from muster.cluster.permissions import may
from muster.events import subjects
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, PRIORITY_CLASSES, WORKLOADS
from muster.policy.workload import plan_workload
from muster.runtime.step import Step

STEP = Step(
    name="create_workload",
    subject=subjects.of_create_workload,
    observe=observe.for_workload,
    plan=plan_workload,
    execute=execute.in_order,
    responsible_for=sweep.owners_and_orphans,
    lists=sweep.FOR_WORKLOADS,
    permissions=permissions.READ_GROUPS
    | permissions.TELL_OWNERS
    | may("list", COMPOSITE_POD_GROUPS, PODS, PRIORITY_CLASSES)
    | may("create delete", WORKLOADS, POD_GROUPS)
    | may("delete", COMPOSITE_POD_GROUPS),
)

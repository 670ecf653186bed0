"""A Job or JobSet changes size: minCount follows the pods that are still to run."""

from __future__ import annotations

from muster.cluster import execute, observe, permissions, sweep
from muster.cluster.permissions import may
from muster.events import subjects
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, WORKLOADS
from muster.policy.resize import plan_resize
from muster.runtime.step import Step

STEP = Step(
    name="resize_gang",
    subject=subjects.of_resize_gang,
    observe=observe.for_resize,
    plan=plan_resize,
    execute=execute.in_order,
    responsible_for=sweep.owners,
    lists=sweep.FOR_RESIZE,
    permissions=permissions.READ_GROUPS
    | permissions.READ_GROUPS_ABOVE
    | may("list", PODS)
    | may("patch", WORKLOADS, POD_GROUPS)
    | may("list create delete", COMPOSITE_POD_GROUPS),
)

"""A Job or JobSet changes size: minCount follows the pods that are still to run."""

from __future__ import annotations

from shared.cluster import execute, observe, permissions, sweep
from shared.cluster.permissions import may
from shared.events import subjects
from shared.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, WORKLOADS
from shared.policy.resize import plan_resize
from shared.runtime.step import Step

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

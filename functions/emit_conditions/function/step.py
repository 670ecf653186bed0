"""A PodGroup is made, placed or refused: the owner's conditions tell."""

from __future__ import annotations

from muster.cluster import execute, observe, permissions, sweep
from muster.cluster.permissions import may
from muster.events import subjects
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, PODS, PRIORITY_CLASSES
from muster.policy.conditions import plan_conditions
from muster.runtime.step import Step

STEP = Step(
    name="emit_conditions",
    subject=subjects.of_emit_conditions,
    observe=observe.for_conditions,
    plan=plan_conditions,
    execute=execute.in_order,
    responsible_for=sweep.owners,
    lists=sweep.FOR_CONDITIONS,
    permissions=permissions.READ_GROUPS
    | permissions.READ_GROUPS_ABOVE
    | permissions.TELL_OWNERS
    | may("list", PODS, EVENTS, PRIORITY_CLASSES, COMPOSITE_POD_GROUPS),
)

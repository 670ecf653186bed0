"""A PodGroup is made, placed or refused: the owner's conditions tell."""

from __future__ import annotations

from shared.cluster import execute, observe, permissions, sweep
from shared.cluster.permissions import may
from shared.events import subjects
from shared.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, PODS, PRIORITY_CLASSES
from shared.policy.conditions import plan_conditions
from shared.runtime.step import Step

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

"""A Job or JobSet changes size: minCount follows the pods that are still to run."""

from __future__ import annotations

from shared.cluster import execute, observe, sweep
from shared.events import subjects
from shared.policy.resize import plan_resize
from shared.runtime.step import Step

STEP = Step(
    name="resize_gang",
    subject=subjects.of_resize_gang,
    observe=observe.for_resize,
    plan=plan_resize,
    execute=execute.in_order,
    responsible_for=sweep.owners,
)

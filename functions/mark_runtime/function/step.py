"""A runtime appears or changes: what its policy says is written on its pod templates."""

from __future__ import annotations

from muster.cluster import execute, observe, sweep
from muster.cluster.permissions import may
from muster.events import subjects
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS, TRAINING_RUNTIMES
from muster.policy.runtimes import plan_runtime
from muster.runtime.step import Step

STEP = Step(
    name="mark_runtime",
    subject=subjects.of_mark_runtime,
    observe=observe.for_runtime,
    plan=plan_runtime,
    execute=execute.in_order,
    responsible_for=sweep.runtimes,
    lists=sweep.FOR_RUNTIMES,
    permissions=may("get list update", TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
    | may("list create", EVENTS),
)

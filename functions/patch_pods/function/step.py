"""A PodGroup appears, or a pod of it: the gate that made the pod wait is lifted."""

from __future__ import annotations

from muster.cluster import execute, observe, permissions, sweep
from muster.cluster.permissions import may
from muster.events import subjects
from muster.objects.resources import PODS
from muster.policy.pods import plan_pods
from muster.runtime.step import Step

STEP = Step(
    name="patch_pods",
    subject=subjects.of_patch_pods,
    observe=observe.for_pods,
    plan=plan_pods,
    execute=execute.each,
    responsible_for=sweep.gated_pods,
    lists=sweep.FOR_PODS,
    lists_tell_all=False,  # only the pods that wait are listed
    permissions=permissions.READ_GROUPS_OF_ONE | permissions.READ_GROUPS_ABOVE | may("get list patch", PODS),
)

"""What a gang lacks, in the words of kube-scheduler 1.37.1."""

from __future__ import annotations

import pytest

from muster.objects.pods import Pod
from muster.policy.status.group_status import with_shortfall
from tests.support import builders as b

GANG = "pod group is unschedulable, minCount (30) cannot be satisfied: 24 scheduled, 5 remaining"
RACKS = f"pod group is unschedulable, 0/4 placements are available, first placement status: {GANG[28:]}"
ALONE = "pod group is unschedulable, minCount (1) cannot be satisfied: 0 scheduled, 0 remaining"
CPU = "0/3 nodes are available: 3 Insufficient cpu."
GPU = "0/3 nodes are available: 1 Insufficient cpu, 3 Insufficient nvidia.com/gpu. preemption: none"
TAINTS = "1 Insufficient cpu, 2 node(s) had untolerated taint(s)"
FIT, ONE = "24 of 30 pods would fit", "lacks cpu on 3 of 3 nodes"
TWO = "lacks cpu on 1 of 3 nodes and nvidia.com/gpu on 3 of 3 nodes"


@pytest.mark.parametrize(
    ("of_group", "of_pod", "expected"),
    [
        (GANG, CPU, f"{FIT}; the next {ONE}; "),
        (RACKS, GPU, f"{FIT} in the first of 4 placements; the next {TWO}; "),
        (GANG, f"0/3 nodes are available: {TAINTS}.", f"{FIT}; the next fits on none of 3 nodes: {TAINTS}; "),
        (ALONE, CPU, f"a pod {ONE}; "),
        (CPU, CPU, f"a pod {ONE}; "),
        (GANG, GANG, ""),
    ],
)
def test_a_figure_is_given_as_far_as_the_scheduler_tells_it(
    of_group: str, of_pod: str, expected: str
) -> None:
    """Where no pod was tried there is none; the scheduler's sentence follows."""
    refused = b.a_pod(None, 1, b.gated(), b.with_condition("PodScheduled", "False", "Unschedulable", of_pod))
    assert with_shortfall(of_group, [Pod.read(refused)]) == f"{expected}{of_group}"

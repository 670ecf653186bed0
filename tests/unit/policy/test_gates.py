"""patch_pods with CompositePodGroups: new pods of one group wait for those of the other groups."""

from __future__ import annotations

from itertools import pairwise

import pytest

from muster.policy.model import Decision, Plan
from muster.policy.reasons import Reason
from tests.support.builders import NOW, being_deleted, bound, of_uid, pods_of, succeeded
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_pods
from tests.support.trees import CHAT, DECODE, GROUPS, PREFILL, a_composite, a_policy, below, observed_tree

Kept = tuple[Reason, tuple[object, ...]]
"""The reason why no gate is lifted, and names and numbers that the message has."""
SHORT = (Reason.AWAITING_MEMBERS, (CHAT, 1, 2))
NEW_PREFILL, NEW_DECODE = pods_of(PREFILL), pods_of(DECODE)
OLD_DECODE = pods_of(DECODE, bound, of_uid("old"))
HANGING = pods_of(DECODE, bound, being_deleted, of_uid("hanging"))
ALL = ["llama-prefill-0-0", "llama-prefill-0-1", "llama-decode-0-0", "llama-decode-0-1"]
ENDED = {**DECODE, "status": {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}}
GOING = {**DECODE, "metadata": {**DECODE["metadata"], "deletionTimestamp": "2026-11-21T07:59:00Z"}}
ONE_IS_ENOUGH = a_policy(schedulingPolicy={"gang": {"minGroupCount": 1}})


def ungated(decision: Decision) -> list[str]:
    """The pods whose gate is lifted."""
    return [action.target.name for action in decision.actions] if isinstance(decision, Plan) else []


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        pytest.param(observed_tree([*NEW_PREFILL, *NEW_DECODE]), ALL, id="all are there: all gates at once"),
        pytest.param(observed_tree([*NEW_PREFILL, *HANGING]), SHORT, id="pods of a sibling still terminate"),
        pytest.param(
            observed_tree([*NEW_PREFILL, *OLD_DECODE], jobs=[PREFILL, GOING]),
            SHORT,
            id="the sibling's Job is on its way out, its pods do not know it yet",
        ),
        pytest.param(
            observed_tree(NEW_PREFILL, jobs=[PREFILL]),
            ALL[:2],
            id="nothing of the sibling is left: the scheduler counts nothing wrongly and waits by itself",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *NEW_DECODE], min_group_count=1),
            (Reason.AWAITING_RESIZE, (CHAT, 1, 2)),
            id="minGroupCount was lowered before the restart and is not raised yet",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *NEW_DECODE], composites=()),
            (Reason.AWAITING_POD_GROUP, (CHAT,)),
            id="the composite is being replaced",
        ),
        pytest.param(
            observed_tree([*pods_of(PREFILL, bound), NEW_DECODE[0], HANGING[1]]),
            (Reason.AWAITING_MEMBERS, (GROUPS["decode"], 1, 2)),
            id="one child is restarted and an old pod of it still terminates",
        ),
        pytest.param(
            observed_tree(
                [NEW_PREFILL[0], *pods_of(DECODE, succeeded)],
                min_group_count=1,
                jobs=[PREFILL, ENDED],
                sizes={"decode": 1},
            ),
            ALL[:1],
            id="a sibling that has ended is not waited for",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], sizes={"prefill": None, "decode": None}),
            SHORT,
            id="basic groups below a gang are placed together too",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], min_group_count=1, policy=ONE_IS_ENOUGH),
            ALL[:2],
            id="one group is enough by the policy",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, NEW_DECODE[0]], min_group_count=1, policy=ONE_IS_ENOUGH),
            ALL[:3],
            id="a group that is short of pods and not needed does not hold back the tree by its gates",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, NEW_DECODE[0], HANGING[1]], min_group_count=1, policy=ONE_IS_ENOUGH),
            ALL[:2],
            id="unless it would be placed beside old pods of its own",
        ),
    ],
)
def test_a_tree_that_was_placed_before(given: Observed, decision: list[str] | Kept) -> None:
    """Never a part of it while it could not be whole, and never stuck."""
    plan = plan_pods(given, NOW)
    if isinstance(decision, list):
        assert ungated(plan) == decision
    else:
        assert (ungated(plan), plan.reason) == ([], decision[0])
        assert mentions(plan.message, *decision[1])


def test_rings_and_deep_trees_come_to_an_end() -> None:
    """A user may make CompositePodGroups below one another, without end and a thousand deep."""
    names = [*(f"level-{number}" for number in range(1000)), ""]
    deep = [a_composite(name, 1, below(above)) for name, above in pairwise(names)]
    deep.append(a_composite(CHAT, 2, below(names[0])))
    ring = [a_composite(CHAT, 2, below("other")), a_composite("other", 1, below(CHAT))]
    for composites in (ring, deep):
        given = observed_tree([*NEW_PREFILL, *NEW_DECODE], composites=composites)
        assert ungated(plan_pods(given, NOW)) == ALL

"""patch_pods with CompositePodGroups: new pods of one group wait for those of the other groups."""

from __future__ import annotations

from itertools import pairwise

import pytest

from muster.policy.model import Decision, Plan
from muster.policy.reasons import Reason
from tests.support.builders import NOW, Object, being_deleted, bound, of_uid, pods_of, succeeded
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_pods
from tests.support.trees import CHAT, DECODE, GROUPS, PREFILL, a_composite, a_policy, below, observed_tree

Kept = tuple[Reason, tuple[object, ...]]
"""The reason why no gate is lifted, and names and numbers that the message has."""
SHORT = (Reason.WAITING_FOR_PODS, (CHAT, 1, 2))
NEW_PREFILL, NEW_DECODE = pods_of(PREFILL), pods_of(DECODE)
OLD_DECODE = pods_of(DECODE, bound, of_uid("old"))
HANGING = pods_of(DECODE, bound, being_deleted, of_uid("hanging"))
ALL = ["llama-prefill-0-0", "llama-decode-0-0"]
ENDED = {**DECODE, "status": {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}}
GOING = {**DECODE, "metadata": {**DECODE["metadata"], "deletionTimestamp": "2026-11-21T07:59:00Z"}}
ONE_IS_ENOUGH = a_policy(schedulingPolicy={"gang": {"minGroupCount": 1}})


def ungated(decision: Decision) -> list[str]:
    """The pods whose gate is lifted."""
    return [action.target.name for action in decision.actions] if isinstance(decision, Plan) else []


LATE = [NEW_PREFILL[0], *pods_of(DECODE, succeeded)]
ONE_CHILD = [*pods_of(PREFILL, bound), NEW_DECODE[0], HANGING[1]]
LOWERED = observed_tree([*NEW_PREFILL, *NEW_DECODE], min_group_count=1)
BASIC = observed_tree([*NEW_PREFILL, *HANGING], sizes={"prefill": None, "decode": None})
SIBLING_GOES = observed_tree([*NEW_PREFILL, *OLD_DECODE], jobs=[PREFILL, GOING])
SIBLING_ENDED = observed_tree(LATE, min_group_count=1, jobs=[PREFILL, ENDED], sizes={"decode": 1})


def enough(*decode: Object) -> Observed:
    """New pods of prefill beside these of decode, in a tree that one group is enough for by its policy."""
    return observed_tree([*NEW_PREFILL, *decode], min_group_count=1, policy=ONE_IS_ENOUGH)


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        (observed_tree([*NEW_PREFILL, *NEW_DECODE]), ALL),
        # Pods of a sibling still terminate, or do not know yet that their Job is on its way out.
        (observed_tree([*NEW_PREFILL, *HANGING]), SHORT),
        (SIBLING_GOES, SHORT),
        (BASIC, SHORT),
        # Nothing of the sibling is left, or it has ended: the scheduler counts nothing wrongly.
        (observed_tree(NEW_PREFILL, jobs=[PREFILL]), ALL[:1]),
        (SIBLING_ENDED, ALL[:1]),
        # minGroupCount was lowered before the restart; the composite is being replaced.
        (LOWERED, (Reason.WAITING_FOR_POD_GROUP, (CHAT, 1, 2))),
        (observed_tree([*NEW_PREFILL, *NEW_DECODE], composites=()), (Reason.WAITING_FOR_POD_GROUP, (CHAT,))),
        (observed_tree(ONE_CHILD), (Reason.WAITING_FOR_PODS, (GROUPS["decode"], 1, 2))),
        (enough(*HANGING), ALL[:1]),
        (enough(NEW_DECODE[0]), ALL),
        (enough(NEW_DECODE[0], HANGING[1]), ALL[:1]),
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

"""patch_pods with CompositePodGroups: new pods of one group wait for those of the other groups."""

from __future__ import annotations

from itertools import pairwise

import pytest

from muster.policy.groups.gate_release import placed_together
from muster.policy.model import NoOp
from muster.policy.plans.patch_pods import needs_owner
from muster.policy.reasons import Reason
from tests.support import cpu
from tests.support.builders import (
    NOW,
    Object,
    a_gang,
    a_users_workload,
    being_deleted,
    bound,
    labelled,
    named,
    of_uid,
    pods_of,
    succeeded,
    with_condition,
)
from tests.support.lifting import Held, assert_ungated, ungated
from tests.support.messages import mentions
from tests.support.planning import Observed, held_groups, plan_pods
from tests.support.trees import (
    CHAT,
    DECODE,
    GROUPS,
    JOBSET,
    PREFILL,
    a_child_group,
    a_composite,
    a_policy,
    below,
    observed_tree,
)

SHORT = Held(Reason.AWAITING_MEMBERS, (CHAT, 1, 2))
NEW_PREFILL, NEW_DECODE = pods_of(PREFILL), pods_of(DECODE)
OLD_DECODE = pods_of(DECODE, bound, of_uid("old"))
HANGING = pods_of(DECODE, bound, being_deleted, of_uid("hanging"))
ALL = ["llama-prefill-0-0", "llama-prefill-0-1", "llama-decode-0-0", "llama-decode-0-1"]
ENDED = {**DECODE, "status": {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}}
GOING = {**DECODE, "metadata": {**DECODE["metadata"], "deletionTimestamp": "2026-11-21T07:59:00Z"}}
ONE_IS_ENOUGH = a_policy(schedulingPolicy={"gang": {"minGroupCount": 1}})
FLAG = a_policy().replace("'groups': [{'name': 'chat'", "'onScale': 'Flag', 'groups': [{'name': 'chat'", 1)


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
            observed_tree([*NEW_PREFILL, *OLD_DECODE], jobs=[PREFILL]),
            SHORT,
            id="the sibling's Job is gone, its pods do not know it yet",
        ),
        pytest.param(
            observed_tree(NEW_PREFILL, jobs=[PREFILL]),
            ALL[:2],
            id="nothing of the sibling is left: the scheduler counts nothing wrongly and waits by itself",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *NEW_DECODE], min_group_count=1),
            Held(Reason.AWAITING_RESIZE, (CHAT, 1, 2)),
            id="minGroupCount was lowered before the restart and is not raised yet",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], min_group_count=1),
            Held(Reason.AWAITING_RESIZE, (CHAT, 1, 2)),
            id="nor is it while old pods terminate",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *NEW_DECODE], composites=()),
            Held(Reason.AWAITING_POD_GROUP, (CHAT,)),
            id="the composite is being replaced",
        ),
        pytest.param(
            observed_tree([*pods_of(PREFILL, bound), *NEW_DECODE]),
            ALL[2:],
            id="one child is restarted while its sibling runs",
        ),
        pytest.param(
            observed_tree([*pods_of(PREFILL, bound), NEW_DECODE[0], HANGING[1]]),
            Held(Reason.AWAITING_MEMBERS, (GROUPS["decode"], 1, 2)),
            id="one child is restarted and an old pod of it still terminates",
        ),
        pytest.param(
            observed_tree(
                [NEW_PREFILL[0], *pods_of(PREFILL, bound)[1:], NEW_DECODE[0], *pods_of(DECODE, bound)[1:]]
            ),
            [ALL[0], ALL[2]],
            id="a replacement in each",
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
            observed_tree(
                [NEW_PREFILL[0], *pods_of(DECODE, succeeded)], jobs=[PREFILL, ENDED], sizes={"decode": 1}
            ),
            Held(Reason.AWAITING_RESIZE, (CHAT, 2, 1)),
            id="though not before minGroupCount was lowered",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], sizes={"prefill": None, "decode": None}),
            SHORT,
            id="basic groups below a gang are placed together too",
        ),
        pytest.param(
            observed_tree(
                [*NEW_PREFILL, *HANGING],
                min_group_count=None,
                policy=a_policy(schedulingPolicy={"basic": {}}),
            ),
            ALL[:2],
            id="gangs below a basic root wait only for themselves",
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
        pytest.param(
            observed_tree(
                [NEW_PREFILL[0], *pods_of(PREFILL, bound, being_deleted, of_uid("hanging"))[1:]],
                min_group_count=None,
                policy=a_policy(schedulingPolicy={"basic": {}}),
                groups=[a_child_group("prefill"), a_child_group("decode", once=False)],
            ),
            Held(Reason.AWAITING_MEMBERS, (GROUPS["prefill"], 1, 2)),
            id="a stage is restarted before a later one was ever placed",
        ),
    ],
)
def test_a_tree_that_was_placed_before(given: Observed, decision: list[str] | Held) -> None:
    """Never a part of it while it could not be whole, and never stuck."""
    assert_ungated(given, decision)


def never_placed(*pods: Object) -> Observed:
    """The tree before the scheduler found a place for it."""
    return observed_tree(pods, min_group_count=1, groups=[a_child_group(name, once=False) for name in GROUPS])


def test_a_tree_that_was_never_placed() -> None:
    """The scheduler sees to it that all or nothing is placed."""
    assert ungated(never_placed(*NEW_PREFILL)) == ALL[:2]


OWN = a_users_workload(root=JOBSET)
OWN["spec"] |= {
    "podGroupTemplates": None,
    "compositePodGroupTemplates": [
        {
            "name": "chat",
            "schedulingPolicy": {"gang": {"minGroupCount": 1}},
            "podGroupTemplates": [a_gang("prefill", 2), a_gang("decode", 2)],
        }
    ],
}


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        pytest.param(
            observed_tree([*NEW_PREFILL, *NEW_DECODE], min_group_count=1, policy=FLAG),
            ALL,
            id="the policy says Flag",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], policy=FLAG),
            SHORT,
            id="the policy says Flag, old pods terminate",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], min_group_count=1, others=[OWN]),
            ALL[:2],
            id="the user's own Workload",
        ),
        pytest.param(
            observed_tree([*NEW_PREFILL, *HANGING], others=[OWN]),
            SHORT,
            id="the user's own CompositePodGroup, old pods terminate",
        ),
        pytest.param(
            observed_tree(NEW_PREFILL, composites=(), others=[OWN]),
            ALL[:2],
            id="the user's own CompositePodGroup is still to come",
        ),
    ],
)
def test_numbers_that_never_follow(given: Observed, decision: list[str] | Held) -> None:
    """No pod waits for a resize that never comes; the others of its tree it waits for all the same."""
    assert_ungated(given, decision)


STRANGER = labelled({"app.kubernetes.io/managed-by": "someone"})


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            observed_tree(
                NEW_PREFILL,
                groups=[a_child_group("prefill", STRANGER, min_count=1), a_child_group("decode")],
            ),
            id="a PodGroup of another controller",
        ),
        pytest.param(
            observed_tree(
                NEW_PREFILL,
                groups=[a_child_group("prefill", being_deleted, min_count=1), a_child_group("decode")],
            ),
            id="a PodGroup on its way out, which its pods hold",
        ),
        pytest.param(
            observed_tree(NEW_PREFILL, composites=(a_composite(CHAT, 1, STRANGER),)),
            id="a CompositePodGroup of another controller",
        ),
        pytest.param(
            observed_tree(
                NEW_PREFILL,
                groups=[a_child_group("prefill", STRANGER, below("theirs"))],
            ),
            id="a PodGroup of another controller, below a CompositePodGroup that Muster does not know",
        ),
    ],
)
def test_pods_do_not_wait_for_groups_that_are_never_resized(given: Observed) -> None:
    """resize_gang leaves them as they are, so their pods do not wait for it."""
    assert ungated(given) == ALL[:2]


def test_the_reply_names_the_whole() -> None:
    """One event for all pods that were let go: the root of the tree, and its owner."""
    decision = plan_pods(observed_tree([*NEW_PREFILL, *NEW_DECODE]), NOW)
    assert not isinstance(decision, NoOp)
    assert mentions(decision.message, 4, CHAT)
    assert decision.reply is not None
    assert decision.reply.owner.kind == "JobSet"
    assert decision.reply.data == {"podGroup": CHAT, "pods": 4}


def test_a_gang_of_gangs_below_another_one_waits_for_itself() -> None:
    """The root is content with one of its two, but each of those is a gang."""
    inner = (a_composite(CHAT, 1, below("root")), a_composite("other", 2, below("root")))
    groups = [a_child_group("prefill"), a_child_group("decode", below("other"))]
    root = a_composite("root", 1)
    given = observed_tree(
        [*NEW_PREFILL, *NEW_DECODE, *HANGING], composites=(root, *inner), groups=groups, policy=FLAG
    )
    assert ungated(given) == ALL[:2]


def test_rings_and_deep_trees_come_to_an_end() -> None:
    """A user may make CompositePodGroups below one another, without end and a thousand deep."""
    pods = [*NEW_PREFILL, *NEW_DECODE]
    ring = (a_composite(CHAT, 2, below("other")), a_composite("other", 1, below(CHAT)))
    assert ungated(observed_tree(pods, composites=ring)) == ALL
    names = [*(f"level-{number}" for number in range(1000)), ""]
    chain = [a_composite(name, 1, below(above)) for name, above in pairwise(names)]
    chain.append(a_composite(CHAT, 2, below(names[0])))
    assert ungated(observed_tree(pods, composites=chain)) == ALL


def test_which_groups_are_placed_together() -> None:
    """All below one root; a group without a parent is on its own."""
    loose = a_child_group("decode", below(""))
    given = observed_tree([], groups=[a_child_group("prefill"), loose])
    prefill, decode = given.groups
    assert placed_together(given.members, prefill) == (prefill,)
    assert placed_together(given.members, decode) == (decode,)
    both = observed_tree([])
    assert placed_together(both.members, both.groups[0]) == both.groups
    assert placed_together(both.members, both.composites[0]) == both.groups


def test_the_owner_is_read_for_every_tree() -> None:
    """Also before the first placement: only all groups together show whether there was one."""
    given = never_placed(*NEW_PREFILL)
    assert all(needs_owner(group, given.pods) for group in given.groups)
    assert not any(needs_owner(group, ()) for group in given.groups)


def test_a_failed_sibling_counts_in_full() -> None:
    """Its JobSet makes it anew, so minGroupCount does not fall in between."""
    failed = {**DECODE, "status": {}}
    with_condition("Failed")(failed)
    given = observed_tree([NEW_PREFILL[0], *pods_of(DECODE, bound)], jobs=[PREFILL, failed])
    assert ungated(given) == ALL[:1]


def test_a_tree_of_a_thousand_groups_is_planned_in_bounded_time() -> None:
    """Each group is looked at a few times, not once for each of the others."""
    groups = [a_child_group("prefill", named(f"group-{number}")) for number in range(1000)]
    given = observed_tree(NEW_PREFILL, groups=groups, min_group_count=1000)
    with cpu.at_most(2):
        assert placed_together(given.members, given.groups[0]) == given.groups
        assert len(held_groups(given)) == 1000

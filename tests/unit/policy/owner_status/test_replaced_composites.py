"""PodGroupsReady when a CompositePodGroup, or the place of a group below one, is not as Muster created it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.model import Plan
from tests.support.builders import (
    NOW,
    Object,
    a_gang,
    a_pod_group,
    a_users_workload,
    a_workload,
    annotated,
    labelled,
    with_spec,
)
from tests.support.conditions import planned_conditions
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_pod_groups
from tests.support.trees import (
    CHAT,
    GROUPS,
    JOBSET,
    a_child_group,
    a_composite,
    a_policy,
    below,
    observed_tree,
)

FOREIGN = labelled({"app.kubernetes.io/managed-by": "somebody"})
FLAG = a_policy().replace("{'workload': {", "{'workload': {'onScale': 'Flag', ")
TREE: Object = {
    "name": "chat",
    "schedulingPolicy": {"gang": {"minGroupCount": 2}},
    "podGroupTemplates": [a_gang(name, 2) for name in GROUPS],
}
TEMPLATES = with_spec(podGroupTemplates=None, compositePodGroupTemplates=[TREE])
OURS = a_workload(root=JOBSET, modifiers=[TEMPLATES])
USERS = a_users_workload(root=JOBSET)
TEMPLATES(USERS)
FALLBACK = annotated({"muster.dev/stand-in": "InvalidPolicy: typo"})


def ours(*composites: Object, policy: str = "", **rest: Any) -> Observed:
    """The tree under the Workload that Muster made."""
    return observed_tree([], composites=composites, workload=OURS, policy=policy, **rest)


def users(*composites: Object) -> Observed:
    """The tree under a Workload of the user's own."""
    return observed_tree([], composites=composites, others=[USERS])


@pytest.mark.parametrize(
    ("given", "status", "reason", "facts"),
    [
        pytest.param(ours(a_composite(CHAT, 2)), "True", "PodGroupsExist", (), id="Muster's own"),
        pytest.param(
            ours(a_composite(CHAT, 2, FOREIGN)),
            "True",
            "PodGroupsExist",
            ("not created by Muster", CHAT),
            id="a user's CompositePodGroup that its groups can fill: it is adopted",
        ),
        pytest.param(
            ours(a_composite(CHAT, 3, FOREIGN)),
            "False",
            "NotMusters",
            ("not created by Muster", CHAT, 3, 2),
            id="a user's CompositePodGroup of one more than it has child groups",
        ),
        pytest.param(
            users(a_composite(CHAT, 3, FOREIGN)),
            "False",
            "NotMusters",
            ("not created by Muster", CHAT, 3, 2),
            id="the same below the user's own Workload",
        ),
        pytest.param(
            users(a_composite(CHAT, 3)),
            "False",
            "NotAsCreated",
            (CHAT, 3, 2),
            id="one with Muster's labels, below the user's own Workload",
        ),
        pytest.param(
            ours(a_composite(CHAT, 3), policy=FLAG),
            "False",
            "NotAsCreated",
            (CHAT, 3, 2),
            id="one with Muster's labels, which resize_gang leaves alone",
        ),
        pytest.param(
            ours(a_composite(CHAT, None)),
            "False",
            "NotAsCreated",
            (CHAT, "basic", "gang"),
            id="a basic one in place of a gang",
        ),
        pytest.param(
            ours(a_composite(CHAT, 2, below("nowhere"))),
            "False",
            "NotAsCreated",
            (CHAT, "nowhere"),
            id="one below a CompositePodGroup that does not exist",
        ),
        pytest.param(
            ours(a_composite(CHAT, 2, below("nowhere"), FALLBACK)),
            "False",
            "NotAsCreated",
            (CHAT, "nowhere"),
            id="the same with the annotation of fallback PodGroups, which no CompositePodGroup has",
        ),
        pytest.param(
            ours(a_composite(CHAT, 2, FOREIGN, below("nowhere"))),
            "False",
            "NotMusters",
            (CHAT, "nowhere"),
            id="a user's below a CompositePodGroup that does not exist",
        ),
        pytest.param(
            ours(a_composite(CHAT, 2, FOREIGN, below(CHAT))),
            "False",
            "NotMusters",
            (CHAT,),
            id="a user's below itself",
        ),
        pytest.param(
            ours(a_composite(CHAT, 2, FOREIGN, below("users")), a_composite("users", 1, FOREIGN)),
            "True",
            "PodGroupsExist",
            ("not created by Muster", CHAT),
            id="a user's below another of his",
        ),
    ],
)
def test_a_composite_is_as_muster_created_it(
    given: Observed, status: str, reason: str, facts: tuple[object, ...]
) -> None:
    """Muster does not change it, and the scheduler only says that it waits."""
    ready = planned_conditions(given)["PodGroupsReady"]
    assert ready[:2] == (status, reason)
    assert mentions(ready[2], *facts)


@pytest.mark.parametrize(
    ("modifiers", "parent", "reason"),
    [
        pytest.param([], "nowhere", "NotAsCreated", id="Muster's labels"),
        pytest.param([FOREIGN], "nowhere", "NotMusters", id="a user's, below what does not exist"),
        pytest.param([], "", "NotAsCreated", id="Muster's labels, below none"),
    ],
)
def test_a_pod_group_is_below_the_composite_of_its_template(
    modifiers: list[Any], parent: str, reason: str
) -> None:
    """Below another it is placed without the gang, or never."""
    moved = a_child_group("decode", below(parent), *modifiers, once=False)
    given = ours(a_composite(CHAT, 1), groups=[a_child_group("prefill"), moved])
    ready = planned_conditions(given)["PodGroupsReady"]
    assert ready[:2] == ("False", reason)
    assert mentions(ready[2], GROUPS["decode"])


def test_flagged_sizes_are_those_of_composites_too() -> None:
    """With `onScale: Flag` nobody else says that the gang is smaller than its policy."""
    ready = planned_conditions(ours(a_composite(CHAT, 1), policy=FLAG))["PodGroupsReady"]
    assert ready[:2] == ("True", "ScalingFlagged")
    assert mentions(ready[2], CHAT, 1, 2)


@pytest.mark.parametrize("given", [{}, {"policy": FLAG}, {"workload": None, "others": [USERS]}])
def test_a_fallback_group_never_counts_for_a_new_composite(given: dict[str, Any]) -> None:
    """A policy was invalid when `prefill` started; now it is repaired, and `decode` comes: 1 child group."""
    fallback = a_child_group("prefill", FALLBACK, below(""), min_count=None)
    observed = observed_tree([], composites=(), **{"workload": OURS, "groups": [fallback], **given})
    plan = plan_pod_groups(observed, NOW)
    assert isinstance(plan, Plan)
    composite, _ = plan.actions
    assert composite.body is not None
    assert composite.body["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 1}}


def test_a_users_group_hides_no_fault_of_another_group() -> None:
    """An adopted group is harmless; a group below nothing is never placed."""
    adopted = a_child_group("prefill", FOREIGN, once=False)
    moved = a_child_group("decode", below("nowhere"), once=False)
    ready = planned_conditions(ours(a_composite(CHAT, 1), groups=[adopted, moved]))["PodGroupsReady"]
    assert ready[:2] == ("False", "NotAsCreated")
    assert mentions(ready[2], GROUPS["decode"], "nowhere")


def test_a_pod_group_with_the_name_of_a_composite_is_another_object() -> None:
    """Names are unique for each kind; no pod of the tree is in that PodGroup."""
    namesake = a_pod_group(CHAT, FOREIGN, root=JOBSET, min_count=9)
    groups = [a_child_group(name) for name in GROUPS] + [namesake]
    ready = planned_conditions(ours(a_composite(CHAT, 2), groups=groups))["PodGroupsReady"]
    assert ready[:2] == ("True", "PodGroupsExist")


def test_a_composite_with_the_name_of_a_pod_group_does_not_stand_for_it() -> None:
    """The PodGroup is created: its pods wait for it."""
    namesake = a_composite(GROUPS["decode"], 1, FOREIGN)
    given = ours(a_composite(CHAT, 2), namesake, groups=[a_child_group("prefill")])
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    assert [action.target.name for action in plan.actions] == [GROUPS["decode"]]

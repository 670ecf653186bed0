"""The laws of every story: each holds on a good timeline, and each fails on one that breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from muster.local.stories import laws
from muster.local.stories.laws import Law
from muster.local.stories.watching import Entry
from muster.policy.group_labels import GATE

Change = tuple[str, str, dict[str, Any]]
GANG = "gang-1"


def _pod(name: str, *, node: str = "", gated: bool = False) -> Change:
    spec: dict[str, Any] = {"schedulingGroup": {"podGroupName": GANG}}
    if node:
        spec["nodeName"] = node
    if gated:
        spec["schedulingGates"] = [{"name": GATE}]
    return "Pod", "MODIFIED", {"metadata": {"name": name}, "spec": spec, "status": {}}


def _group(min_count: int = 2, **spec: Any) -> Change:
    policy = {"schedulingPolicy": {"gang": {"minCount": min_count}}, "workloadRef": {"workloadName": "work"}}
    return "PodGroup", "ADDED", {"metadata": {"name": GANG}, "spec": {**policy, **spec}, "status": {}}


WORKLOAD: Change = ("Workload", "ADDED", {"metadata": {"name": "work"}, "spec": {}})
GOOD = [
    WORKLOAD,
    _pod("a", gated=True),
    _pod("b", gated=True),
    _group(),
    _pod("a"),
    _pod("b"),
    _pod("a", node="n1"),
    _pod("b", node="n2"),
]

SUSPENDED = [*GOOD[:-2], ("Pod", "DELETED", _pod("a")[2]), GOOD[-1], ("Pod", "DELETED", GOOD[-1][2])]
"""A Job that is suspended after the scheduler placed it."""


def _timeline(changes: Sequence[Change], seconds_between: float = 0.01) -> list[Entry]:
    """Number changes in the order in which they are written down."""
    entries = []
    for number, (kind, change, body) in enumerate(changes):
        metadata = {**body["metadata"], "resourceVersion": str(number)}
        entries.append(Entry(number * seconds_between, change, {**body, "kind": kind, "metadata": metadata}))
    return entries


def _below(name: str, child: str, *, node: str = "", gated: bool = False) -> Change:
    """A pod of one of the two groups of a gang of groups."""
    kind, change, body = _pod(name, node=node, gated=gated)
    body["spec"]["schedulingGroup"] = {"podGroupName": child}
    return kind, change, body


def _tree() -> list[Change]:
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    root = {"kind": "CompositePodGroup", "metadata": {"name": "root"}, "spec": policy}
    tree: list[Change] = [("CompositePodGroup", "ADDED", root)]
    for name in ("left", "right"):
        spec = {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "parentCompositePodGroupName": "root",
        }
        body = {"kind": "PodGroup", "metadata": {"name": name}, "spec": spec, "status": {}}
        tree.append(("PodGroup", "ADDED", body))
    return tree


@pytest.mark.parametrize("law", laws.LAWS)
@pytest.mark.parametrize(
    "changes",
    [GOOD, SUSPENDED, [*_tree(), _below("b", "right"), _below("a", "left"), _below("a", "left", node="n1")]],
)
def test_a_gang_that_is_bound_as_it_should_be_breaks_no_law(law: Law, changes: list[Change]) -> None:
    """Every pod that a gang needs is there and ungated before the first is bound."""
    assert law(_timeline(changes)) == []


BROKEN = [
    pytest.param(
        laws.no_gang_is_bound_before_it_can_be,
        [WORKLOAD, _group(), _pod("a"), _pod("b", gated=True), _pod("a", node="n1")],
        id="the first pod is bound while the second is gated",
    ),
    pytest.param(
        laws.no_gang_is_bound_before_it_can_be,
        [WORKLOAD, _group(), _pod("a"), _pod("a", node="n1"), _pod("b"), _pod("b", node="n1")],
        id="the first pod is bound before the second is born",
    ),
    pytest.param(
        laws.no_gang_stays_partly_bound,
        [*GOOD[:-1], _pod("b")],
        id="only one of two is ever bound",
    ),
    pytest.param(
        laws.workload_group_binding_in_this_order,
        [_group(), WORKLOAD],
        id="the group is made before its Workload",
    ),
    pytest.param(
        laws.workload_group_binding_in_this_order,
        [WORKLOAD, _pod("a", node="n1"), _group()],
        id="a pod is bound before its group is made",
    ),
    pytest.param(
        laws.no_gate_is_lifted_before_its_group_exists,
        [WORKLOAD, _pod("a", gated=True), _pod("a"), _group()],
        id="a gate is lifted before the group is made",
    ),
    pytest.param(
        laws.no_tree_is_bound_before_it_can_be,
        [*_tree(), _below("a", "left"), _below("a", "left", node="n1")],
        id="the first of two groups is bound before the other has pods",
    ),
    pytest.param(
        laws.no_tree_is_bound_before_it_can_be,
        [*_tree(), _below("b", "right", gated=True), _below("a", "left"), _below("a", "left", node="n1")],
        id="the first of two groups is bound while the other's pod is gated",
    ),
]


@pytest.mark.parametrize(("law", "changes"), BROKEN)
def test_a_law_that_is_broken_says_so(law: Law, changes: list[Change]) -> None:
    """One wrong order or one missing pod is one breach."""
    assert len(law(_timeline(changes))) == 1


def test_a_gang_is_not_bound_long_after_it_could_be() -> None:
    """One that lost a pod more than five seconds ago waits for another."""
    assert len(laws.no_gang_is_bound_before_it_can_be(_timeline(SUSPENDED, 3))) == 1


def test_every_law_can_be_broken() -> None:
    """By one of the timelines above."""
    assert {case.values[0] for case in BROKEN} == set(laws.LAWS)

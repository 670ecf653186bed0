"""The stories of `muster run` hold, and the rules behind them notice when they do not."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.local import display
from muster.local.stories import STORIES, LocalStory, StoryRun, checks, story_named
from muster.local.stories.watching import Entry
from muster.policy.group_labels import GATE
from tests.conftest import Wording
from tests.stories.conftest import Told

History = list[Entry]


@pytest.mark.parametrize("story", [pytest.param(story, id=story.title) for story in STORIES])
def test_a_story_holds(told: Told, story: LocalStory) -> None:
    """All that had to happen happened, from the first pod to the owner's conditions."""
    run = StoryRun(story, told.stack.client, told.recorder)
    run.run()
    history = told.recorder.history(story.namespace)
    timeline = "\n".join(display.timeline(run, history, told.activities))
    assert [check for check in run.checks if not check.passed] == [], timeline
    assert len(run.checks) >= len(checks.DESCRIPTIONS) + 2
    assert told.stack.dead_letters == []


@pytest.fixture(scope="module")
def history(told: Told) -> History:
    """What was seen of a story of three pods, told once more under another name."""
    story = replace(story_named("torch"), own_namespace="torch-again")
    run = StoryRun(story, told.stack.client, told.recorder)
    assert run.run()
    return told.recorder.history(story.namespace)


def changed(history: History, which: Callable[[Entry], bool], change: Callable[[Entry], None]) -> History:
    """The same history with the first entry of some kind changed."""
    told = copy.deepcopy(history)
    change(next(one for one in told if which(one)))
    return told


def is_birth(seen: Entry) -> bool:
    """Whether a pod was born."""
    return seen.kind == "Pod" and seen.change == "ADDED"


def without_gate(history: History) -> History:
    """One pod is born free."""
    return changed(history, is_birth, lambda one: one.object["spec"].pop("schedulingGates"))


def with_smaller_group(history: History) -> History:
    """The PodGroup asks for one pod less in the end."""

    def shrink(one: Entry) -> None:
        one.object["spec"]["schedulingPolicy"] = {"gang": {"minCount": 2}}

    return changed(history[::-1], lambda one: one.kind == "PodGroup", shrink)[::-1]


def with_late_group(history: History) -> History:
    """The PodGroup comes last of all."""

    def delay(one: Entry) -> None:
        one.object["metadata"]["resourceVersion"] = str(1 << 40)

    return changed(history, lambda one: one.kind == "PodGroup" and one.change == "ADDED", delay)


def with_early_binding(history: History) -> History:
    """One pod has a node while the others still have their gates."""

    def bind(one: Entry) -> None:
        one.object["spec"]["nodeName"] = "node-1"
        one.object["spec"]["schedulingGates"] = []

    return changed(history, is_birth, bind)


def with_a_changed_owner(history: History) -> History:
    """Somebody wrote to the TrainJob's spec."""

    def edit(one: Entry) -> None:
        one.object["spec"]["suspend"] = True

    return changed(history, lambda one: one.kind == "TrainJob" and one.change == "MODIFIED", edit)


def with_a_binding_beside_gated_pods(history: History) -> History:
    """The first pod that loses its gate has a node at once, while the others still have their gates."""

    def is_free(one: Entry) -> bool:
        return one.kind == "Pod" and not one.object["spec"].get("schedulingGates")

    return changed(history, is_free, lambda one: one.object["spec"].update(nodeName="node-1"))


def with_a_pod_that_waits(history: History) -> History:
    """One pod never gets a node."""
    told = copy.deepcopy(history)
    name = next(one.name for one in told if is_birth(one))
    for one in told:
        if one.name == name:
            one.object["spec"].pop("nodeName", None)
    return told


BROKEN = [
    pytest.param(checks.stamped_at_birth, without_gate, id="a pod that is born without a gate"),
    pytest.param(checks.groups_as_asked, with_smaller_group, id="a PodGroup of the wrong size"),
    pytest.param(checks.all_groups_before_any_binding, with_late_group, id="a PodGroup after a binding"),
    pytest.param(checks.all_bound, with_a_pod_that_waits, id="a pod that is never bound"),
    pytest.param(checks.specs_untouched, with_a_changed_owner, id="a changed owner"),
]


@pytest.mark.parametrize(("expectation", "broken"), BROKEN)
def test_a_rule_notices(
    history: History, expectation: checks.Expectation, broken: Callable[[History], History]
) -> None:
    """The expectation finds nothing in what happened, and a fault in what did not."""
    groups = story_named("torch").groups
    assert list(expectation(history, groups)) == []
    assert list(expectation(broken(history), groups)) != []


def test_every_rule_has_a_history_that_breaks_it() -> None:
    """A expectation that nothing can break would be none."""
    every = {expectation for of_sentence in checks.EXPECTATIONS.values() for expectation in of_sentence}
    assert {case.values[0] for case in BROKEN} == every


@pytest.mark.parametrize(
    ("broken", "sentences"),
    [
        pytest.param(with_late_group, {2, 3}, id="the PodGroup comes last"),
        pytest.param(with_early_binding, {0, 2}, id="a pod is bound at its birth"),
        pytest.param(with_a_binding_beside_gated_pods, {4}, id="a pod is bound before its gang is complete"),
        pytest.param(with_a_pod_that_waits, {4}, id="a pod is never bound"),
    ],
)
def test_a_broken_law_fails_the_sentence_of_it(
    history: History, broken: Callable[[History], History], sentences: set[int]
) -> None:
    """Sentences 2, 3 and 4 are about order, gates and binding together; 0 is about birth."""
    told = sorted(broken(history), key=lambda one: one.version)
    failed = [
        check.description
        for check in checks.check_timeline(told, story_named("torch").groups)
        if not check.passed
    ]
    assert failed == [checks.DESCRIPTIONS[number] for number in sorted(sentences)]


def test_an_empty_history_breaks_the_rules() -> None:
    """Where nothing was seen, nothing is taken for granted."""
    found = checks.check_timeline([], story_named("torch").groups)
    assert not all(check.passed for check in found)


def test_the_tree_shows_owner_workload_and_groups(told: Told, history: History, wording: Wording) -> None:
    """A TrainJob stands over its Workload, that one over its gang, and all is well."""
    namespace = history[0].namespace
    assert told.recorder.until(lambda: _is_scheduled(told, namespace), 5)
    (tree,) = display.owner_trees(told.recorder.objects(namespace))
    (workload,) = tree.children
    (gang,) = workload.children
    assert (tree.text, tree.mark) == (f"TrainJob {namespace}/llama  Scheduled", display.GOOD)
    assert workload.text == "Workload llama"
    assert ("trainer 3/3" in gang.text, gang.mark) == (True, display.GOOD)
    wording(gang.text)


def _is_scheduled(told: Told, namespace: str) -> bool:
    return display.owner_trees(told.recorder.objects(namespace))[0].mark == display.GOOD


def test_gated_pods_are_told_in_the_tree(history: History, wording: Wording) -> None:
    """A group that waits says how many of its pods have a gate."""
    born = [one.object for one in history if is_birth(one)]
    groups = [one.object for one in history if one.kind == "PodGroup" and one.change == "ADDED"]
    owners = [one.object for one in history if one.kind == "TrainJob" and one.change == "ADDED"]
    (tree,) = display.owner_trees([*owners, *groups, *born])
    assert tree.mark == display.WAITING
    group = tree.children[0].text
    assert "trainer" in group
    assert re.findall(r"\d+", group) == ["0", "3", "3"]
    wording(group)
    assert all(pod["spec"]["schedulingGates"] == [{"name": GATE}] for pod in born)

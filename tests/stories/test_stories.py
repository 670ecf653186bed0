"""The stories of `muster run` pass, and each of their rules fails on a history that breaks it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import pytest

from muster.local import display
from muster.local.stories import STORIES, LocalStory, StoryRun, checks, story_named
from muster.local.stories.watching import Entry
from tests.stories.conftest import ObservedStack

History = list[Entry]


@pytest.mark.parametrize("story", [pytest.param(story, id=story.title) for story in STORIES])
def test_a_story_holds(observed_stack: ObservedStack, story: LocalStory) -> None:
    """Every rule of the story holds, and no event becomes a dead letter."""
    run = StoryRun(story, observed_stack.stack.client, observed_stack.recorder)
    run.run()
    history = observed_stack.recorder.history(story.namespace)
    timeline = "\n".join(display.timeline(run, history, observed_stack.activities))
    assert [check for check in run.checks if not check.passed] == [], timeline
    assert len(run.checks) >= len(checks.CHECKS) + 2
    assert observed_stack.stack.dead_letters == []


@pytest.fixture(scope="module")
def history(observed_stack: ObservedStack) -> History:
    """The history of a story of three pods."""
    story = replace(story_named("torch"), own_namespace="torch-again")
    run = StoryRun(story, observed_stack.stack.client, observed_stack.recorder)
    assert run.run()
    return observed_stack.recorder.history(story.namespace)


def changed(history: History, which: Callable[[Entry], bool], change: Callable[[Entry], None]) -> History:
    """Return the history with the first matching entry changed."""
    entries = copy.deepcopy(history)
    change(next(entry for entry in entries if which(entry)))
    return entries


def is_birth(seen: Entry) -> bool:
    """Return whether an entry is the creation of a pod."""
    return seen.kind == "Pod" and seen.change == "ADDED"


def without_gate(history: History) -> History:
    """One pod is created without a gate."""
    return changed(history, is_birth, lambda entry: entry.object["spec"].pop("schedulingGates"))


def with_smaller_group(history: History) -> History:
    """The PodGroup's minCount is too low by one."""

    def shrink(entry: Entry) -> None:
        entry.object["spec"]["schedulingPolicy"] = {"gang": {"minCount": 2}}

    return changed(history[::-1], lambda entry: entry.kind == "PodGroup", shrink)[::-1]


def with_late_group(history: History) -> History:
    """The PodGroup is created last."""

    def delay(entry: Entry) -> None:
        entry.object["metadata"]["resourceVersion"] = str(1 << 40)

    return changed(history, lambda entry: entry.kind == "PodGroup" and entry.change == "ADDED", delay)


def with_early_binding(history: History) -> History:
    """One pod is bound while the others are gated."""

    def bind(entry: Entry) -> None:
        entry.object["spec"]["nodeName"] = "node-1"
        entry.object["spec"]["schedulingGates"] = []

    return changed(history, is_birth, bind)


def with_a_changed_owner(history: History) -> History:
    """The TrainJob's spec is changed."""

    def edit(entry: Entry) -> None:
        entry.object["spec"]["suspend"] = True

    return changed(history, lambda entry: entry.kind == "TrainJob" and entry.change == "MODIFIED", edit)


def with_a_binding_beside_gated_pods(history: History) -> History:
    """The first pod without a gate is bound at once, while the others are gated."""

    def is_free(entry: Entry) -> bool:
        return entry.kind == "Pod" and not entry.object["spec"].get("schedulingGates")

    return changed(history, is_free, lambda entry: entry.object["spec"].update(nodeName="node-1"))


def with_a_pod_that_waits(history: History) -> History:
    """One pod is never bound."""
    entries = copy.deepcopy(history)
    name = next(entry.name for entry in entries if is_birth(entry))
    for entry in entries:
        if entry.name == name:
            entry.object["spec"].pop("nodeName", None)
    return entries


BROKEN = [
    pytest.param(checks.stamped_at_birth, without_gate, id="a pod that is born without a gate"),
    pytest.param(checks.groups_as_asked, with_smaller_group, id="a PodGroup of the wrong size"),
    pytest.param(checks.all_groups_before_any_binding, with_late_group, id="a PodGroup after a binding"),
    pytest.param(checks.all_bound, with_a_pod_that_waits, id="a pod that is never bound"),
    pytest.param(checks.specs_untouched, with_a_changed_owner, id="a changed owner"),
]


@pytest.mark.parametrize(("expectation", "broken"), BROKEN)
def test_an_expectation_fails_on_a_broken_history(
    history: History, expectation: checks.Expectation, broken: Callable[[History], History]
) -> None:
    """The expectation passes on the recorded history and fails on the broken one."""
    groups = story_named("torch").groups
    assert list(expectation(history, groups)) == []
    assert list(expectation(broken(history), groups)) != []


def test_every_expectation_has_a_history_that_breaks_it() -> None:
    """Every expectation is broken by one of the histories above."""
    every = {expectation for _, of_sentence in checks.CHECKS.values() for expectation in of_sentence}
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
    """Rules 2, 3 and 4 are about order, gates and binding together; rule 0 about creation."""
    entries = sorted(broken(history), key=lambda entry: entry.version)
    failed = [
        check.description
        for check in checks.check_timeline(entries, story_named("torch").groups)
        if not check.passed
    ]
    assert failed == [list(checks.CHECKS)[number] for number in sorted(sentences)]


def test_an_empty_history_fails_the_checks() -> None:
    """With an empty history some checks fail."""
    results = checks.check_timeline([], story_named("torch").groups)
    assert not all(check.passed for check in results)

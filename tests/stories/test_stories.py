"""The stories of `muster run` pass, and each of their rules fails on a history that breaks it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from muster.local.stories import laws, story
from muster.local.stories.story import STORIES, LocalStory, StoryRun
from muster.local.stories.watching import Entry
from muster.testing import RunningStack
from tests.stories.conftest import check_story

History = list[Entry]


@pytest.mark.parametrize("told", [pytest.param(told, id=told.title) for told in STORIES.values()])
def test_a_story_holds(running_stack: RunningStack, told: LocalStory) -> None:
    """Every rule of the story holds, and no event becomes a dead letter."""
    checks = check_story(running_stack, told).checks
    assert len(checks) >= len(laws.LAWS) + len(story.EXPECTATIONS) + 2


@pytest.fixture(scope="module")
def history(running_stack: RunningStack) -> History:
    """The history of a story of three pods."""
    again = replace(STORIES["torch"], own_namespace="torch-again")
    run = StoryRun(again, running_stack.client, running_stack.recorder)
    assert run.run()
    return running_stack.recorder.history(again.namespace)


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


def with_a_changed_owner(history: History) -> History:
    """The TrainJob's spec is changed."""

    def edit(entry: Entry) -> None:
        entry.object["spec"]["suspend"] = True

    return changed(history, lambda entry: entry.kind == "TrainJob" and entry.change == "MODIFIED", edit)


BROKEN = [
    pytest.param(story.stamped_at_birth, without_gate, id="a pod that is born without a gate"),
    pytest.param(story.groups_as_asked, with_smaller_group, id="a PodGroup of the wrong size"),
    pytest.param(story.spec_untouched, with_a_changed_owner, id="a changed owner"),
]


@pytest.mark.parametrize(("expectation", "broken"), BROKEN)
def test_an_expectation_fails_on_a_broken_history(
    history: History,
    expectation: Callable[[History, story.Groups], Iterator[str]],
    broken: Callable[[History], History],
) -> None:
    """The expectation passes on the recorded history and fails on the broken one."""
    groups = STORIES["torch"].groups
    assert list(expectation(history, groups)) == []
    assert list(expectation(broken(history), groups)) != []


def test_every_expectation_has_a_history_that_breaks_it() -> None:
    """Every expectation is broken by one of the histories above."""
    assert {case.values[0] for case in BROKEN} == set(story.EXPECTATIONS)

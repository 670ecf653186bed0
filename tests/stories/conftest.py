"""The local stack, started once for each test module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from muster.local.stack import Stack
from muster.local.stories.story import LocalStory, StoryRun
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity
from muster.simulator.overlays import CLUSTER


class ObservedStack:
    """A running local stack, its recorder, and the activities of its functions."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities

    def check_story(self, story: LocalStory) -> StoryRun:
        """Run a story; every check passes, and no event becomes a dead letter."""
        run = StoryRun(story, self.stack.client, self.recorder)
        run.run()
        assert [check for check in run.checks if not check.passed] == [], self.activities
        assert self.stack.dead_letters == []
        return run


@contextmanager
def observed(overlay: Path = CLUSTER) -> Iterator[ObservedStack]:
    """Run the local stack of an overlay, and watch it."""
    activities: list[Activity] = []
    with Stack(overlay, activities.append) as stack, TimelineRecorder(stack.client) as recorder:
        yield ObservedStack(stack, recorder, activities)


@pytest.fixture(scope="module")
def observed_stack() -> Iterator[ObservedStack]:
    """The local stack as `muster run` starts it."""
    with observed() as stack:
        yield stack

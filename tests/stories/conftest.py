"""The local stack, started once for each test module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.local.stack import Stack, StackOptions
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity


class ObservedStack:
    """A running local stack, its recorder, and the activities of its functions."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities


@pytest.fixture(scope="module")
def observed_stack() -> Iterator[ObservedStack]:
    """The local stack as `muster run` starts it."""
    activities: list[Activity] = []
    with Stack(StackOptions(), activities.append) as stack, TimelineRecorder(stack.client) as recorder:
        yield ObservedStack(stack, recorder, activities)

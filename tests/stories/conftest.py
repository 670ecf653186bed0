"""One local stack for all stories of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.local.stack import Stack, StackOptions
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity


class Told:
    """A running stack, what happens in it, and what the functions do."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """The stack as `muster run` starts it."""
    activities: list[Activity] = []
    with Stack(StackOptions(), activities.append) as stack, TimelineRecorder(stack.client) as recorder:
        yield Told(stack, recorder, activities)

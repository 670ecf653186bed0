"""One local stack for all stories of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.local.stack import Options, Stack
from muster.local.stories.watching import Recorder
from muster.replay.activity import Activity


class Told:
    """A running stack, what happens in it, and what the functions do."""

    def __init__(self, stack: Stack, recorder: Recorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    """The stack as `muster run` starts it."""
    activities: list[Activity] = []
    with Stack(Options(), activities.append) as stack, Recorder(stack.client) as recorder:
        yield Told(stack, recorder, activities)

"""How many deliveries and API calls a story takes: tests/counts.yaml says it exactly."""

from __future__ import annotations

import pytest

from tests import counts
from tests.replays import recorded


@pytest.mark.parametrize("story", recorded.STORIES)
def test_a_story_takes_as_many_deliveries_and_calls_as_before(story: str) -> None:
    """More are slower, and fewer may be a read that is missing; `make golden-update` accepts a change."""
    assert counts.costs(story) == counts.pinned()["stories"][story]


def test_every_story_is_counted() -> None:
    """And none that is gone."""
    assert tuple(counts.pinned()["stories"]) == recorded.STORIES

"""Imports at the start, deliveries and API calls: tests/counts.yaml says them exactly.

More are slower, and fewer may be a read that is missing; `make golden-update` accepts a change.
"""

from __future__ import annotations

import pytest

from tests import counts
from tests.replays import recorded


def test_a_start_imports_as_many_modules_as_before() -> None:
    """Imports are most of a cold start."""
    assert counts.imported() == counts.pinned()["modules"]


@pytest.mark.parametrize("story", recorded.STORIES)
def test_a_story_takes_as_many_deliveries_and_calls_as_before(story: str) -> None:
    """Until no function writes any more."""
    assert counts.costs(story) == counts.pinned()["stories"][story]


def test_every_story_is_counted() -> None:
    """And none that is gone."""
    assert tuple(counts.pinned()["stories"]) == recorded.STORIES

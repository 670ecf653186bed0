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


def test_a_stateful_set_takes_as_many_deliveries_and_calls_as_before() -> None:
    """One after the other; on a cluster pods that are added together share runs of gather_pods.

    The embedded server has no StatefulSets: a call without verb and resource is the GET of it.
    """
    found = {
        size: counts.costs_of(counts.NAMESPACE, counts.pods_of_a_stateful_set(size)) for size in counts.SIZES
    }
    assert found == counts.pinned()["stateful sets"]


def test_every_story_is_counted() -> None:
    """And none that is gone."""
    assert tuple(counts.pinned()["stories"]) == recorded.STORIES

"""Completion indexes are read and spelled as the Job controller does."""

from __future__ import annotations

import pytest

from muster.simulator.controllers.job.indexes import first_pending, format_indexes, parse_indexes


@pytest.mark.parametrize(
    ("indexes", "text"),
    [
        pytest.param([], "", id="no index is the empty text"),
        pytest.param([3], "3", id="one index stands alone"),
        pytest.param([0, 1], "0,1", id="two in a row are no range"),
        pytest.param([0, 1, 2], "0-2", id="three in a row are a range"),
        pytest.param([0, 3, 4, 5, 9, 10], "0,3-5,9,10", id="ranges and single indexes mix"),
    ],
)
def test_indexes_are_spelled_as_in_the_status(indexes: list[int], text: str) -> None:
    """Formatting gives the status text, and parsing gives the indexes back."""
    assert format_indexes(reversed(indexes)) == text
    assert parse_indexes(text, 100) == frozenset(indexes)


def test_indexes_beyond_the_completions_do_not_count() -> None:
    """After scaling down, what the status says of higher indexes is forgotten."""
    assert parse_indexes("0-5,7", 3) == frozenset({0, 1, 2})


def test_the_lowest_free_indexes_come_first() -> None:
    """Replacements fill the lowest gaps, never more than asked for."""
    assert first_pending(2, 6, {0, 2}) == [1, 3]
    assert first_pending(9, 4, {0, 1}) == [2, 3]

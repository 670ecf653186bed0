"""Shuffled, doubled and left-out events of a stream."""

from __future__ import annotations

import pytest

from muster.replay.replay import Arrangement


@pytest.mark.parametrize(
    ("arrangement", "arranged"),
    [
        pytest.param(Arrangement(), "abc", id="nothing"),
        pytest.param(Arrangement(without=(2,)), "ac", id="without the second"),
        pytest.param(Arrangement(reverse=True), "cba", id="in reverse"),
        pytest.param(Arrangement(duplicates=2), "aaabbbccc", id="two more of each"),
        pytest.param(Arrangement(twice=True), "abcabc", id="the whole a second time"),
        pytest.param(
            Arrangement(without=(1,), reverse=True, duplicates=1, twice=True), "ccbbccbb", id="all of it"
        ),
    ],
)
def test_a_stream_is_arranged(arrangement: Arrangement, arranged: str) -> None:
    """Left out first, then turned round, then doubled."""
    assert "".join(arrangement.apply("abc")) == arranged


def test_a_seed_gives_the_same_order_each_time_and_another_one_another() -> None:
    """Every event is in it as often as before."""
    stream = list(range(20))
    first, again, other = (Arrangement(duplicates=1, shuffle=seed).apply(stream) for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other) == sorted(stream * 2)
    assert first != sorted(first)


def test_an_event_that_is_not_there_cannot_be_left_out() -> None:
    """Events are counted from 1."""
    with pytest.raises(LookupError, match=r"--without 4.*3"):
        Arrangement(without=(4,)).apply("abc")

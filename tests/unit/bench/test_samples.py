"""Medians, quartiles and ratios."""

from __future__ import annotations

import pytest

from bench.samples import Summary, quantile, ratios


def test_a_summary_has_median_and_quartiles() -> None:
    """Interpolated between neighbours."""
    assert Summary.of([4, 1, 3, 2]) == Summary(2.5, 1.75, 3.25)


@pytest.mark.parametrize(("share", "value"), [(0, 10), (0.5, 20), (0.95, 29), (1, 30)])
def test_quantiles(share: float, value: float) -> None:
    """From the smallest to the largest sample."""
    assert quantile([30, 10, 20], share) == pytest.approx(value)


def test_a_share_outside_0_to_1_is_refused() -> None:
    """95 instead of 0.95 would silently be the last sample."""
    with pytest.raises(ValueError, match="95"):
        quantile([1, 2], 95)


def test_ratios_are_of_the_same_round() -> None:
    """A round in which everything is slow does not change them."""
    assert ratios([2, 20, 4], [1, 10, 2]) == [2, 2, 2]

"""Medians, spreads and ratios of samples. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """What a table shows of some samples.

    Attributes:
        median: of all samples.
        low: the first quartile.
        high: the third quartile.
    """

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        """Return the summary of at least one sample."""
        return cls(statistics.median(samples), quantile(samples, 0.25), quantile(samples, 0.75))


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the value below which a share (0 to 1) of the samples lie, interpolated between neighbours."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share is between 0 and 1, not {share}")
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def ratios(samples: Sequence[float], reference: Sequence[float]) -> list[float]:
    """Return each sample divided by the reference's sample of the same round.

    A machine that is busy for one round slows both, so ratios vary less than the samples do.

    Raises:
        ValueError: the two have different numbers of rounds, or a reference's sample is 0.
    """
    if 0 in reference:
        raise ValueError("no ratio to 0")
    return [sample / base for sample, base in zip(samples, reference, strict=True)]

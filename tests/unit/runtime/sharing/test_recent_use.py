"""What a namespace used is forgotten in time, and those that used little take no memory."""

from __future__ import annotations

import pytest

from muster.runtime.sharing.recent_use import MOST_NAMESPACES, RecentUse
from muster.runtime.sharing.turns import HALF_LIFE_SECONDS


def test_use_is_forgotten() -> None:
    """A namespace that was busy alone for minutes is not behind others for as long."""
    use = RecentUse(HALF_LIFE_SECONDS)
    for second in range(600):
        use.add("busy", 4.0, float(second))
    assert use.of("busy", 599.0) == pytest.approx(4 * HALF_LIFE_SECONDS / 0.693, rel=0.15)
    assert use.of("busy", 599.0 + 10 * HALF_LIFE_SECONDS) < 0.05
    assert use.of("new", 599.0) == 0


def test_namespaces_that_used_little_take_no_memory_for_good() -> None:
    """Forged events may name any number; they do not make those forgotten that used more."""
    use = RecentUse(HALF_LIFE_SECONDS)
    use.add("busy", 10.0, 0.0)
    for number in range(5 * MOST_NAMESPACES):
        use.add(f"namespace-{number}", 0.001, 1.0)
    assert len(use) <= 2 * MOST_NAMESPACES
    assert use.of("busy", 1.0) > 5

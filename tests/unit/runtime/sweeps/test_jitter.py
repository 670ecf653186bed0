"""A sweep starts after a random delay, so that functions do not list at the same moment."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.runtime.fakes import a_handler, a_step, an_event

Waited = Callable[..., float]
STEPS = ("create_workload", "create_pod_groups", "patch_pods", "resize_gang", "emit_conditions")


@pytest.fixture(name="waited")
def _waited(monkeypatch: pytest.MonkeyPatch) -> Waited:
    """How long a function waits before it sweeps, without waiting."""
    waits: list[float] = []
    monkeypatch.setattr("muster.runtime.sweep.time.sleep", waits.append)

    def of(event_id: str, step: str = STEPS[0], **settings: float) -> float:
        headers, _ = an_event(type="dev.muster.sweep", id=event_id)
        assert a_handler(a_step(name=step), **settings).handle(headers, b"").status == 202
        return waits.pop()

    return of


@pytest.mark.thorough
def test_waits_lie_within_the_setting_and_all_over_it(waited: Waited) -> None:
    """Never longer than MUSTER_SWEEP_JITTER_SECONDS, and each tenth of it is as good as any other."""
    waits = [waited(str(number), sweep_jitter_seconds=5.0) for number in range(500)]
    assert min(waits) >= 0
    assert max(waits) < 5
    tenths = [sum(int(wait * 2) == tenth for wait in waits) for tenth in range(10)]
    assert min(tenths) > 25


def test_functions_that_get_the_same_event_wait_differently(waited: Waited) -> None:
    """The event goes to all of them at once; that is what they are to be kept apart for."""
    assert len({waited("7", step, sweep_jitter_seconds=2.0) for step in STEPS}) == len(STEPS)


def test_an_event_that_comes_again_waits_as_long(waited: Waited) -> None:
    """So that a replay of recorded events takes the same time."""
    assert waited("7", sweep_jitter_seconds=2.0) == waited("7", sweep_jitter_seconds=2.0) > 0


def test_zero_switches_it_off(waited: Waited) -> None:
    """Whatever the event."""
    assert {waited(str(number), sweep_jitter_seconds=0.0) for number in range(50)} == {0.0}

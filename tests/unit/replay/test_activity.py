"""Activities are read from the log lines of functions about events, and from no other lines."""

from __future__ import annotations

from muster.policy.reasons import Reason
from muster.replay.activity import Activity, ActivityHandler
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.telemetry import logs


def test_the_outcome_of_an_event_is_an_activity() -> None:
    """One activity for each line that says how an event ended."""
    heard: list[Activity] = []
    with ActivityHandler(heard.append):
        logs.outcome_line(
            "patch_pods", Outcome(OutcomeKind.DONE, Reason.GATES_LIFTED, "2 gates lifted", actions=2)
        )
    (activity,) = heard
    assert (activity.step, activity.outcome, activity.message) == ("patch_pods", "done", "2 gates lifted")
    assert activity.acted


def test_a_line_about_no_event_is_left_alone() -> None:
    """Such as readiness writes of permissions: a client that asks for it must get an answer."""
    heard: list[Activity] = []
    with ActivityHandler(heard.append):
        fields = {"step": "patch_pods", "reason": Reason.PERMISSION_MISSING}
        logs.LOGGER.error("may not patch pods", extra={"fields": fields})
        logs.LOGGER.info("no fields at all")
    assert heard == []


def test_a_long_message_is_cut() -> None:
    """2,000 events about a JobSet with a schedulerName of a megabyte took `muster replay` two gigabytes."""
    heard: list[Activity] = []
    with ActivityHandler(heard.append):
        logs.outcome_line("patch_pods", Outcome(OutcomeKind.DONE, Reason.GATES_LIFTED, "x" * 1_000_000))
    assert len(heard[0].message) < 2_000

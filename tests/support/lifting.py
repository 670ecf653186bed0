"""The decision of patch_pods: which pods lose their gate, or why none does."""

from __future__ import annotations

from dataclasses import dataclass

from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from tests.support.builders import NOW
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_pods


@dataclass(frozen=True)
class KeptGates:
    """The reason why no gate is lifted, and names and numbers that the message must contain."""

    reason: Reason
    facts: tuple[object, ...] = ()


def ungated(observed: Observed) -> list[str] | NoOp:
    """Return the names of the pods whose gate is lifted, or the decision to lift none."""
    decision = plan_pods(observed, NOW)
    if isinstance(decision, NoOp):
        return decision
    assert decision.reason == Reason.GATES_LIFTED
    return [action.target.name for action in decision.actions]


def assert_ungated(observed: Observed, expected: list[str] | KeptGates) -> None:
    """Assert which pods lose their gate; if none does, also assert the reason and pin the message."""
    decision = ungated(observed)
    if not isinstance(expected, KeptGates):
        assert decision == expected
        return
    assert isinstance(decision, NoOp)
    assert without_message(decision) == NoOp(expected.reason)
    assert mentions(decision.message, *expected.facts)

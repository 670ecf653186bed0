"""What patch_pods lets go."""

from __future__ import annotations

from dataclasses import dataclass

from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from tests.conftest import Wording
from tests.support.builders import NOW
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_pods


@dataclass(frozen=True)
class Held:
    """Why no gate is lifted, with the names and numbers that the message has."""

    reason: Reason
    facts: tuple[object, ...] = ()


def let_go(given: Observed) -> list[str] | NoOp:
    """The names of the pods whose gates are lifted, or why none is."""
    decision = plan_pods(given, NOW)
    if isinstance(decision, NoOp):
        return decision
    assert decision.reason == Reason.GATES_LIFTED
    return [action.target.name for action in decision.actions]


def assert_let_go(given: Observed, expected: list[str] | Held, wording: Wording) -> None:
    """Assert which pods are let go, or why none is; then the message is pinned too."""
    decision = let_go(given)
    if not isinstance(expected, Held):
        assert decision == expected
        return
    assert isinstance(decision, NoOp)
    assert without_message(decision) == NoOp(expected.reason)
    assert mentions(decision.message, *expected.facts)
    wording(decision.message)

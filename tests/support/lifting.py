"""What patch_pods lets go."""

from __future__ import annotations

from muster.policy.model import Nothing, Observed
from muster.policy.pods import plan_pods
from muster.policy.reasons import Reason
from tests.support.builders import NOW


def let_go(given: Observed) -> list[str] | Nothing:
    """The names of the pods whose gates are lifted, or why none is."""
    decision = plan_pods(given, NOW)
    if isinstance(decision, Nothing):
        return decision
    assert decision.reason == Reason.GATES_LIFTED
    return [action.target.name for action in decision.actions]

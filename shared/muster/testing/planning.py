"""Run a step's plan on a case."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from muster.cluster.interface import Cluster
from muster.events.parse import parse
from muster.policy.model import Action, Decision, NoOp
from muster.replay.files import RecordedRequest
from muster.replay.plans import as_yaml, decide, subjects, to_document
from muster.runtime.step import Step
from muster.testing.cases import Case


@dataclass(frozen=True)
class Planned:
    """The decisions of a step: one for an event, one for each object of a sweep.

    Attributes:
        step: the step.
        decisions: each a `Plan` or a `NoOp`.
    """

    step: Step
    decisions: tuple[Decision, ...]

    @property
    def decision(self) -> Decision:
        """The only decision.

        Raises:
            ValueError: it was a sweep that found another number of objects.
        """
        if len(self.decisions) != 1:
            raise ValueError(f"{self.step.name} made {len(self.decisions)} decisions; look at `decisions`")
        return self.decisions[0]

    @property
    def reason(self) -> str:
        """The reason of the only decision."""
        return str(self.decision.reason)

    @property
    def message(self) -> str:
        """The message of the only decision."""
        return self.decision.message

    @property
    def actions(self) -> tuple[Action, ...]:
        """The writes of all decisions."""
        plans = [decision for decision in self.decisions if not isinstance(decision, NoOp)]
        return tuple(action for plan in plans for action in plan.actions)

    def as_yaml(self) -> str:
        """Return the decisions as `muster plan` prints them; equal decisions give equal text."""
        return as_yaml(to_document(self.step, decision) for decision in self.decisions)


def plan_of(step: Step, case: Case) -> Planned:
    """Return the plans of a step for a case, without a server and without writes.

    Raises:
        UnreadableEvent: the event is no CloudEvent, or one of ApiServerSource without its object.
        pydantic.ValidationError: a field of an object has a type that no API server would have stored.
    """
    return Planned(step, tuple(decisions(step, case.event, case.cluster(), case.now)))


def decisions(step: Step, request: RecordedRequest, cluster: Cluster, now: datetime) -> list[Decision]:
    """Return the decisions of a step for an event, one for each subject."""
    event = parse(request.headers, request.body)
    return [decide(step, subject, cluster, now) for subject in subjects(step, event, cluster)]

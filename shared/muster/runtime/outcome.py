"""The outcome of an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from muster.objects.meta import ObjectRef
from muster.policy.model import GangReport, Milestone, Reply


class OutcomeKind(StrEnum):
    """What became of an event; only that of REQUEUE is to be delivered again."""

    DONE = "done"
    NOTHING = "nothing"
    REQUEUE = "requeue"
    UNREADABLE = "unreadable"
    BUG = "bug"


STATUS = {OutcomeKind.REQUEUE: 409, OutcomeKind.UNREADABLE: 400, OutcomeKind.BUG: 500}
"""The HTTP status of each kind, unless the outcome has its own; else 202."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one event, or of one object of a sweep.

    `actions` counts the writes that succeeded, `status` is an HTTP status in place of the kind's, and
    `retry_after` the API server's Retry-After in seconds.
    """

    kind: OutcomeKind
    reason: str
    message: str = ""
    subject: ObjectRef | None = None
    actions: int = 0
    reply: Reply | None = None
    status: int | None = None
    retry_after: float | None = None
    error: Exception | None = field(default=None, compare=False, repr=False)
    gangs: GangReport | None = None
    milestones: tuple[Milestone, ...] = ()

    @property
    def http_status(self) -> int:
        """The status of the answer, without regard to a reply."""
        return self.status or STATUS.get(self.kind, 202)

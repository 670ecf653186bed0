"""The outcome of an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from muster.objects.meta import ObjectRef
from muster.policy.model import Reply


class OutcomeKind(StrEnum):
    """The five kinds of outcome."""

    DONE = "done"
    """A plan was carried out."""
    NOTHING = "nothing"
    """No write was needed."""
    REQUEUE = "come_again"
    """The event must be delivered again. The value is that of logs and metrics."""
    UNREADABLE = "unreadable"
    """The event is invalid; delivering it again would not help."""
    BUG = "bug"
    """A bug of Muster, or an unexpected error."""


STATUS = {
    OutcomeKind.DONE: 202,
    OutcomeKind.NOTHING: 202,
    OutcomeKind.REQUEUE: 409,
    OutcomeKind.UNREADABLE: 400,
    OutcomeKind.BUG: 500,
}
"""The HTTP status of each kind, unless the outcome has its own."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one event, or of one object of a sweep.

    Attributes:
        kind: one of the five kinds.
        reason: the reason of the plan, or a `Reason` of the runtime.
        message: details of the reason; never a whole object.
        subject: the object that the event was about, if known.
        actions: the number of writes that succeeded.
        reply: the reply event of the answer, if any.
        status: an HTTP status in place of the kind's; None takes the kind's.
        retry_after: the API server's Retry-After in seconds; None if it sent none.
        error: the exception, for its trace in the log.
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

    @property
    def http_status(self) -> int:
        """The status of the answer, without regard to a reply."""
        return self.status or STATUS[self.kind]

"""What became of an event."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from muster.objects.meta import ObjectRef
from muster.policy.model import Reply
from muster.policy.reasons import Reason


class OutcomeKind(StrEnum):
    """The five ends an event can come to."""

    DONE = "done"
    """A plan was carried out."""
    NOTHING = "nothing"
    """There was nothing to do."""
    REQUEUE = "come_again"
    """Not now: the same event must be delivered again."""
    UNREADABLE = "unreadable"
    """The event is at fault; delivering it again would not help."""
    BUG = "bug"
    """Muster is at fault, or something is that nobody foresaw."""


STATUS = {
    OutcomeKind.DONE: 202,
    OutcomeKind.NOTHING: 202,
    OutcomeKind.REQUEUE: 409,
    OutcomeKind.UNREADABLE: 400,
    OutcomeKind.BUG: 500,
}
"""The HTTP status of each kind, where the outcome does not bring another one."""


@dataclass(frozen=True)
class Outcome:
    """What became of one event, or of one object of a sweep.

    Attributes:
        kind: which of the five ends.
        reason: why, in one word; all of them are in `muster.policy.reasons`.
        message: the same in words; never a whole object.
        subject: the object it was about, where that is known.
        actions: the number of writes that were carried out.
        reply: what to answer with, besides the status.
        status: an HTTP status in place of the kind's own; None takes that.
        retry_after: seconds the API server asked to wait; None when it did not say.
        error: what was raised, for its trace in the log.
    """

    kind: OutcomeKind
    reason: Reason
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

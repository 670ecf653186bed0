"""What the functions did, told by their own log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from muster.runtime import logs


@dataclass(frozen=True)
class Activity:
    """What a function made of one event, or of one object of a sweep.

    Attributes:
        at: seconds since the epoch.
        step: `create_workload`.
        happened: the last word of the event's type, `add`; or `sweep`.
        about: the object, `TrainJob team-a/llama`.
        outcome: done, nothing, come_again, unreadable or bug.
        reason: a `muster.policy.reasons.Reason` or the class of an error.
        message: the same in words.
        actions: writes that were carried out.
        status: the HTTP status of the answer.
        milliseconds: from the request to the answer; 0 for an object of a sweep.
    """

    at: float
    step: str
    happened: str
    about: str
    outcome: str
    reason: str
    message: str
    actions: int
    status: int
    milliseconds: float

    @property
    def acted(self) -> bool:
        """Whether anything was written, or anything went wrong: what is worth a line on a screen."""
        return self.actions > 0 or self.outcome not in {"done", "nothing"}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], message: str, at: float) -> Activity:
        """The activity that a log line tells of (`muster.runtime.logs.outcome_line`)."""
        namespace, name = fields.get("namespace", ""), fields.get("name", "")
        where = f"{namespace}/{name}" if namespace else name
        return cls(
            at=at,
            step=fields["step"],
            happened=str(fields.get("type", "")).rpartition(".")[2],
            about=f"{fields.get('kind', '')} {where}".strip(),
            outcome=fields["outcome"],
            reason=fields["reason"],
            message=message,
            actions=fields["actions"],
            status=fields["status"],
            milliseconds=fields.get("duration_ms", 0.0),
        )


class Listening(logging.Handler):
    """Hands every activity of the functions in this process to a listener, instead of writing log lines."""

    def __init__(self, listener: Callable[[Activity], None]) -> None:
        super().__init__()
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the listener of one log line, if it is one about an event or an object of a sweep."""
        fields = getattr(record, "fields", {})
        if "outcome" in fields:
            self._listener(Activity.from_fields(fields, record.getMessage(), time.time()))

    def __enter__(self) -> Self:
        self._before = logs.LOGGER.handlers, logs.LOGGER.level, logs.LOGGER.propagate
        logs.LOGGER.handlers = [*logs.LOGGER.handlers, self]
        logs.LOGGER.propagate = False
        logs.LOGGER.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        logs.LOGGER.handlers, level, logs.LOGGER.propagate = self._before
        logs.LOGGER.setLevel(level)

"""The reactions of functions to events, parsed from their log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from muster.runtime.telemetry import logs


@dataclass(frozen=True)
class Activity:
    """The result of a function for one event, or for one object of a sweep.

    Attributes:
        at: seconds since the epoch.
        trigger: the last part of the event's type, `add`; or `sweep`.
        about: the object, `TrainJob team-a/llama`.
        outcome: done, nothing, requeue, unreadable or bug.
        reason: a `muster.policy.reasons.Reason` or the class of an error.
        actions: how many writes were executed.
    """

    at: float
    step: str
    trigger: str
    about: str
    outcome: str
    reason: str
    message: str
    actions: int

    @property
    def acted(self) -> bool:
        """Whether the function wrote anything or failed; other activities are not displayed."""
        return self.actions > 0 or self.outcome not in {"done", "nothing"}


class ActivityHandler(logging.Handler):
    """Passes each activity of the functions in this process to a listener, in place of log output."""

    def __init__(self, listener: Callable[[Activity], None]) -> None:
        super().__init__()
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the activity of a log record to the listener; records without an outcome are ignored."""
        fields = getattr(record, "fields", {})  # see muster.runtime.telemetry.logs.outcome_line
        if "outcome" in fields:
            name = "/".join(filter(None, (fields.get("namespace"), fields.get("name"))))
            about = f"{fields.get('kind', '')} {name}".strip()
            trigger = str(fields.get("type", "")).rpartition(".")[2]
            same = {key: fields[key] for key in ("step", "outcome", "reason", "actions")}
            message = record.getMessage()
            self._listener(Activity(time.time(), trigger=trigger, about=about, message=message, **same))

    def __enter__(self) -> Self:
        self._before = logs.LOGGER.handlers, logs.LOGGER.level, logs.LOGGER.propagate
        logs.LOGGER.handlers = [*logs.LOGGER.handlers, self]
        logs.LOGGER.propagate = False
        logs.LOGGER.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        logs.LOGGER.handlers, level, logs.LOGGER.propagate = self._before
        logs.LOGGER.setLevel(level)

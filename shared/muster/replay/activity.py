"""The reactions of functions to events, parsed from their log lines."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

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

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any], message: str, at: float) -> Activity:
        """Return the activity of a log line (`muster.runtime.telemetry.logs.outcome_line`)."""
        name = "/".join(filter(None, (fields.get("namespace"), fields.get("name"))))
        trigger = str(fields.get("type", "")).rpartition(".")[2]
        about = f"{fields.get('kind', '')} {name}".strip()
        same = {key: fields[key] for key in ("step", "outcome", "reason", "actions")}
        return cls(at=at, trigger=trigger, about=about, message=message, **same)


class ActivityHandler(logging.Handler):
    """Passes each activity of the functions in this process to a listener, in place of log output."""

    def __init__(self, listener: Callable[[Activity], None]) -> None:
        super().__init__()
        self._listener = listener

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the activity of a log record to the listener; records without an outcome are ignored."""
        fields = getattr(record, "fields", {})
        if "outcome" in fields:
            self._listener(Activity.from_fields(fields, record.getMessage(), time.time()))

    def __enter__(self) -> Self:
        self._before = logs.LOGGER.handlers, logs.LOGGER.level, logs.LOGGER.propagate
        logs.LOGGER.handlers = [*logs.LOGGER.handlers, self]
        logs.LOGGER.propagate = False
        logs.LOGGER.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        logs.LOGGER.handlers, level, logs.LOGGER.propagate = self._before
        logs.LOGGER.setLevel(level)

"""Logs: one line of JSON per event, on standard output; never a whole object."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muster.events.parse import Event, ResourceEvent, Sweep
from muster.objects.meta import ObjectRef
from muster.runtime.outcome import Outcome, OutcomeKind

LOGGER = logging.getLogger("muster")

LEVELS = {
    OutcomeKind.DONE: logging.INFO,
    OutcomeKind.NOTHING: logging.DEBUG,
    OutcomeKind.REQUEUE: logging.WARNING,
    OutcomeKind.UNREADABLE: logging.WARNING,
    OutcomeKind.BUG: logging.ERROR,
}


class JsonLines(logging.Formatter):
    """One JSON object per record: time, level, and the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without a line break."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure(level: str) -> None:
    """Send log lines of a level and above to standard output; called once, at the start of a server.

    The warnings and errors of servers and libraries become JSON lines too, with their traces.
    """
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    LOGGER.handlers = [handler]
    LOGGER.setLevel(level)
    # A server's own handlers would write each line a second time.
    LOGGER.propagate = False
    logging.root.handlers = [handler]
    logging.root.setLevel(logging.WARNING)
    # Their warnings are about retries and waiting requests; an error is the outcome of an event.
    for library in ("urllib3", "waitress.queue"):
        logging.getLogger(library).setLevel(logging.ERROR)


def outcome_line(step: str, outcome: Outcome, **more: Any) -> None:
    """Write the log line of an event, or of an object of a sweep; at level DEBUG if nothing was to do."""
    if not LOGGER.isEnabledFor(LEVELS.get(outcome.kind, logging.INFO)):
        return
    fields: dict[str, Any] = {"step": step} | more
    if outcome.subject:
        fields |= _named(outcome.subject)
    fields |= {
        "outcome": str(outcome.kind),
        "reason": str(outcome.reason),
        "actions": outcome.actions,
        "status": outcome.http_status,
    }
    LOGGER.log(LEVELS[outcome.kind], "%s", outcome.message, exc_info=outcome.error, extra={"fields": fields})


def about(event: Event) -> dict[str, str]:
    """Return the log fields that identify an event."""
    if isinstance(event, ResourceEvent):
        mode = "ref" if event.object is None else "resource"
        type_ = f"dev.knative.apiserver.{mode}.{event.happened}"
        return {"event": event.id, "type": type_} | _named(event.ref)
    return {"event": event.id, "type": "sweep" if isinstance(event, Sweep) else event.type}


def claimed(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the log fields of an event that could not be parsed, from its headers."""
    names = {"ce-id": "event", "ce-type": "type"}
    return {names[key.lower()]: value for key, value in headers.items() if key.lower() in names}


def _named(ref: ObjectRef) -> dict[str, str]:
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}

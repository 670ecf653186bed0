"""Logs: one line of JSON per event, on standard output; never a whole object."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from muster.events.model import Event, OtherEvent, ResourceEvent, Sweep
from muster.runtime.outcome import Outcome, OutcomeKind

LOGGER = logging.getLogger("muster")

LEVELS = {
    OutcomeKind.DONE: logging.INFO,
    OutcomeKind.NOTHING: logging.INFO,
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
    """Write the log line of an event, or of an object of a sweep."""
    fields: dict[str, Any] = {"step": step} | more
    if outcome.subject:
        subject = outcome.subject
        fields |= {"kind": subject.kind, "namespace": subject.namespace, "name": subject.name}
    fields |= {
        "outcome": str(outcome.kind),
        "reason": str(outcome.reason),
        "actions": outcome.actions,
        "status": outcome.http_status,
    }
    LOGGER.log(LEVELS[outcome.kind], "%s", outcome.message, exc_info=outcome.error, extra={"fields": fields})


def about(event: Event) -> dict[str, str]:
    """Return the log fields that identify an event."""
    match event:
        case ResourceEvent(id=id_, happened=happened, ref=ref):
            mode = "ref" if event.object is None else "resource"
            named = {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
            return {"event": id_, "type": f"dev.knative.apiserver.{mode}.{happened}"} | named
        case Sweep(id=id_):
            return {"event": id_, "type": "sweep"}
        case OtherEvent(id=id_, type=type_):
            return {"event": id_, "type": type_}


def claimed(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the log fields of an event that could not be parsed, from its headers."""
    lower_case = {name.lower(): value for name, value in headers.items()}
    fields = {"event": lower_case.get("ce-id"), "type": lower_case.get("ce-type")}
    return {field: value for field, value in fields.items() if value}

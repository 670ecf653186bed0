"""Events into a file: JSON Lines of structured CloudEvents, in order of arrival.

One line is one event as it was sent, but for what a broker put on it and what may be secret
(`muster.replay.redaction`).
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from muster.events.dead_letters import BROKERS_OWN
from muster.replay.appending import Pieces
from muster.replay.redaction import is_secret, without_secrets
from muster.simulator.broker import CloudEvent

SECRET, NOT_JSON = "about a Secret", "with data that is not JSON"
"""Why an event is left out: what cannot be looked into cannot be cleaned."""


class Recording:
    """Takes events until it is full or ended; safe to use from several threads.

    Args:
        pieces: the file.
        limit: so many events are kept; 0 means any number.
        full: is called when no more can be kept.

    Attributes:
        kept: how many events of which kind and verb, `("Job", "add")`; the type stands in place of the kind
            where an event is of no ApiServerSource.
        left_out: how many were not kept, by why.
        last: what the last one kept is about.
        error: why it ended early; None while all is well.
    """

    def __init__(self, pieces: Pieces, *, limit: int = 0, full: Callable[[], object] = lambda: None) -> None:
        self._pieces = pieces
        self._limit = limit
        self._full = full
        self._lock = threading.Lock()
        self._ended = False
        self.kept: Counter[tuple[str, str]] = Counter()
        self.left_out: Counter[str] = Counter()
        self.last = ""
        self.error: OSError | None = None

    def take(self, event: CloudEvent) -> bool:
        """Write an event, or leave it out; False when the recording has ended."""
        line = _line(event)
        with self._lock:
            if self._ended:
                return False
            if isinstance(line, str):
                self.left_out[line] += 1
                return True
            return self._written(line, event)

    def end(self) -> None:
        """Take nothing more."""
        with self._lock:
            self._ended = True

    def _written(self, line: bytes, event: CloudEvent) -> bool:
        try:
            self._pieces.append(line)
        except OSError as error:
            self.error = error
        else:
            self.kept[_sort(event)] += 1
            self.last = about(event)
        self._ended = self.error is not None or self.kept.total() == self._limit
        if self._ended:
            self._full()
        return self.error is None


def about(event: CloudEvent) -> str:
    """What an event tells of, in a few words: `Job update team-a/llama`, or its type and subject."""
    kind, verb = _sort(event)
    place = f"{event['namespace']}/{event['name']}".strip("/") or event["subject"]
    return " ".join(word for word in (kind, verb, place) if word)


def _sort(event: CloudEvent) -> tuple[str, str]:
    if event["kind"] and event["type"].startswith("dev.knative.apiserver."):
        return event["kind"], event["type"].rpartition(".")[2]
    return event["type"], ""


def _line(event: CloudEvent) -> bytes | str:
    """The line of an event; in words why there is none."""
    if is_secret({"kind": event["kind"], "apiVersion": event["apiversion"] or "v1"}):
        return SECRET
    envelope = _structured(event)
    if envelope is None or "data_base64" in envelope:
        return NOT_JSON
    data = envelope.get("data")
    if isinstance(data, dict) and is_secret(data):
        return SECRET
    kept = {name: value for name, value in envelope.items() if name not in BROKERS_OWN}
    if data is not None:
        kept["data"] = without_secrets(data)
    # In ASCII: a separator of lines as Unicode knows it would else break the line in some readers.
    return json.dumps(kept, separators=(",", ":")).encode() + b"\n"


def _structured(event: CloudEvent) -> dict[str, Any] | None:
    try:
        return event.structured()
    except ValueError:
        return None

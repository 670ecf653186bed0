"""Sending of events with ApiServerSource's retries: after six attempts in 3.1 seconds the event is dropped.

The retries are those that `events.go` of knative.dev/eventing v0.47.0 configures in sdk-go. Measured: 500,
400 and 409 are attempted once, 503 six times, all with the same event id.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping

import urllib3

from muster.simulator.clock import now

Sink = Callable[[Mapping[str, str], bytes], int]
"""Receives headers and body of an event; returns the HTTP status, 0 if there was no response."""

RETRIED = frozenset({0, 404, 413, 425, 429, 502, 503, 504})
"""sdk-go's list (protocol/http), and 0 for no response; after a 500 the event is dropped at once."""

RETRY_DELAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each retry."""
_log = logging.getLogger(__name__)


class Sender:
    """Sends the events of one source."""

    def __init__(
        self,
        sink: Sink | str,
        *,
        wait: Callable[[float], object] = time.sleep,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Create a sender.

        Args:
            sink: URL of a broker or service, or a function.
            wait: called with the seconds before a retry.
            headers: headers of every event, such as Kn-Namespace.
        """
        self._sink = _HttpSink(sink) if isinstance(sink, str) else sink
        self._wait = wait
        self._headers = dict(headers or {})

    def send(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Send an event with a new id; return False if it was dropped, which is also logged."""
        event_id = str(uuid.uuid4())
        sent = {**headers, **self._headers, "Ce-Id": event_id, "Ce-Time": now()}
        status = self._sink(sent, body)
        for seconds in RETRY_DELAYS:
            if status not in RETRIED:
                break
            self._wait(seconds)
            status = self._sink(sent, body)
        if status in range(200, 300):
            return True
        _log.error(
            "failed to send %s of %s, id %s: %s", sent["Ce-Type"], sent["Ce-Subject"], event_id, status
        )
        return False


class _HttpSink:
    """POSTs to a URL without timeout, as the adapter does: a hanging sink blocks the watch."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool = urllib3.PoolManager(maxsize=16, retries=False)

    def __call__(self, headers: Mapping[str, str], body: bytes) -> int:
        try:
            return self._pool.request(
                "POST", self._url, body=body, headers=dict(headers), redirect=False, timeout=None
            ).status
        except urllib3.exceptions.HTTPError:
            return 0

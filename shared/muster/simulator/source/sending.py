"""How ApiServerSource sends: a few tries within three seconds, then the event is gone.

As `events.go` of knative.dev/eventing v0.47.0 asks sdk-go for it; measured: 500, 400 and 409 are one attempt,
503 is six over 3.1 seconds, all under the same id.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping

import urllib3

from muster.simulator.clock import now

Sink = Callable[[Mapping[str, str], bytes], int]
"""Takes one event; the HTTP status, or 0 when no answer came."""

RETRIED = frozenset({0, 404, 413, 425, 429, 502, 503, 504})
"""sdk-go's list (protocol/http), and no answer. A 500 is not in it: an event that gets one is lost."""

WAITS = (0.1, 0.2, 0.4, 0.8, 1.6)
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
        """Remember where to send.

        Args:
            sink: URL of a broker or service, or something to call.
            wait: waits so many seconds between attempts.
            headers: put on every event, such as Kn-Namespace.
        """
        self._sink = _HttpSink(sink) if isinstance(sink, str) else sink
        self._wait = wait
        self._headers = dict(headers or {})

    def send(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Send one event under a fresh id; False when it was dropped, which is logged and that is all."""
        event_id = str(uuid.uuid4())
        told = {**headers, **self._headers, "Ce-Id": event_id, "Ce-Time": now()}
        status = self._sink(told, body)
        for seconds in WAITS:
            if status not in RETRIED:
                break
            self._wait(seconds)
            status = self._sink(told, body)
        if status in range(200, 300):
            return True
        _log.error(
            "failed to send %s of %s, id %s: %s", told["Ce-Type"], told["Ce-Subject"], event_id, status
        )
        return False


class _HttpSink:
    """POSTs to a URL; no time-out, like the adapter: a sink that never answers stops that kind's stream."""

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

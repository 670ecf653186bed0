"""The CloudEvents that ApiServerSource sends about Kubernetes objects, and how it sends them.

As `pkg/adapter/apiserver/events/events.go` of knative.dev/eventing v0.47.0, with the retries of its client.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import urllib3

from muster.objects.resources import guess_plural
from muster.simulator.clock import now

Object = dict[str, Any]

Sink = Callable[[Mapping[str, str], bytes], int]
"""Receives headers and body of an event; returns the HTTP status, 0 if there was no response."""

RETRIED = frozenset({0, 404, 413, 425, 429, 502, 503, 504})
"""sdk-go's list (protocol/http), and 0 for no response; after a 500 the event is dropped at once."""

RETRY_DELAYS = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds before each retry; after the last one the event is dropped."""

_log = logging.getLogger(__name__)


class Mode(StrEnum):
    """The data of an event: the object, or a reference to it (`spec.mode`)."""

    RESOURCE = "Resource"
    REFERENCE = "Reference"


class ChangeType(StrEnum):
    """The last part of an event's type."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


_TYPES = {Mode.RESOURCE: "dev.knative.apiserver.resource", Mode.REFERENCE: "dev.knative.apiserver.ref"}


def to_event(change: ChangeType, item: Object, mode: Mode, source: str) -> tuple[dict[str, str], bytes]:
    """Return the headers and body of an event in binary mode, without `Ce-Id` and `Ce-Time`."""
    api_version, kind = item["apiVersion"], item["kind"]
    name, namespace = item["metadata"]["name"], item["metadata"].get("namespace", "")
    headers = {
        "Ce-Specversion": "1.0",
        "Ce-Type": f"{_TYPES[mode]}.{change}",
        "Ce-Source": source,
        "Ce-Subject": f"/apis/{api_version}/namespaces/{namespace}/{guess_plural(kind)}/{name}",
        "Ce-Apiversion": api_version,
        "Ce-Kind": kind,
        "Ce-Name": name,
        "Ce-Namespace": namespace,
        "Content-Type": "application/json",
    }
    reference = {"kind": kind, **({"namespace": namespace} if namespace else {}), "name": name}
    data = item if mode is Mode.RESOURCE else {**reference, "apiVersion": api_version}
    return headers, json.dumps(data, separators=(",", ":")).encode()


class Sender:
    """Sends the events of one source, with headers of its own and the adapter's retries."""

    def __init__(
        self, sink: Sink | str, *, wait: Callable[[float], object], headers: Mapping[str, str]
    ) -> None:
        self._sink = _http_sink(sink) if isinstance(sink, str) else sink
        self._wait = wait
        self._headers = headers

    def send(self, headers: Mapping[str, str], body: bytes) -> bool:
        """Send an event with a new id; return False if it was dropped, which is also logged."""
        sent = {**headers, **self._headers, "Ce-Id": str(uuid.uuid4()), "Ce-Time": now()}
        status = self._sink(sent, body)
        for seconds in RETRY_DELAYS:
            if status not in RETRIED:
                break
            self._wait(seconds)
            status = self._sink(sent, body)
        if status in range(200, 300):
            return True
        _log.error("failed to send %s of %s: %s", sent["Ce-Type"], sent["Ce-Subject"], status)
        return False


def _http_sink(url: str) -> Sink:
    """Return a sink that POSTs to a URL without timeout, as the adapter does."""
    pool = urllib3.PoolManager(maxsize=16, retries=False)

    def send(headers: Mapping[str, str], body: bytes) -> int:
        try:
            return pool.request("POST", url, body=body, headers=dict(headers), redirect=False).status
        except urllib3.exceptions.HTTPError:
            return 0

    return send

"""Contract cases of a broker, and the recording of what it answered and delivered.

A case declares a broker with triggers, what its recipients answer, and the events that are posted to it. The
answers of the ingress and all deliveries are recorded, with addresses and times replaced by placeholders, and
compared with the recording of Knative's broker (`answers/`).
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import urllib3

from tests.contract.broker.recipients import LONGEST_SECONDS, HeardRequest, Reaction, Recipients

Headers = Mapping[str, str]
Entries = dict[str, Any]

EVENT: dict[str, str] = {
    "Ce-Specversion": "1.0",
    "Ce-Id": "1",
    "Ce-Source": "/test",
    "Ce-Type": "dev.muster.sweep",
}
DEAD_LETTERS = {"deadLetterSink": {"name": "dead-letter"}}
"""A delivery's sink; each broker gets it in the form that it understands."""

OF_THE_CLIENT = {"host", "user-agent", "accept-encoding", "content-length", "connection", "referer"}
"""Headers that HTTP clients add by themselves; not recorded."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True)
class BrokerCase:
    """One rule of a broker.

    Attributes:
        subject: what the rule is about; its recording is in `answers/<subject>.json`.
        key: the key of its recording there.
        rule: a sentence.
        triggers: the `spec` of each trigger by name, without broker and subscriber; the subscriber has the
            trigger's name.
        posts: headers and body of the events to post.
        reactions: the answers of each recipient in order, the last one repeated, or by the id of the event.
        delivery: `spec.delivery` of the broker; None leaves it out.
        gaps: the least seconds between the deliveries to a recipient.
    """

    subject: str
    key: str
    rule: str
    triggers: Mapping[str, Mapping[str, Any]]
    posts: Sequence[tuple[Headers, bytes]]
    reactions: Mapping[str, Sequence[Reaction] | Mapping[str, Reaction]] = field(default_factory=dict)
    delivery: Mapping[str, Any] | None = None
    gaps: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def broker(self) -> str:
        """The name of the case's broker."""
        return f"{self.subject}-{self.key}".replace("_", "-")


class ServedBroker(Protocol):
    """The broker of one case, ours or Knative's.

    Attributes:
        url: the address that events are posted to, `http://<host>/<namespace>/<name>`.
        address: the address of the broker that dead letters name.
        client: sends requests to `url`.
    """

    url: str
    address: str
    client: urllib3.PoolManager

    def settle(self, since: float) -> None:
        """Wait until nothing is queued or about to be tried again.

        Args:
            since: when the last event was posted, of the clock of `HeardRequest.at`.
        """
        ...


def converse(case: BrokerCase, broker: ServedBroker, recipients: Recipients) -> Entries:
    """Run a case and return its recording: answers to events, and the deliveries to each recipient.

    Raises:
        AssertionError: a delivery came too early.
    """
    for name, reactions in case.reactions.items():
        recipients.react(case.key, name, reactions)
    statuses = [_post(broker, headers, body) for headers, body in case.posts]
    broker.settle(time.monotonic())
    heard = recipients.of_case(case.key)
    for name, gaps in case.gaps.items():
        seen = [later.at - earlier.at for earlier, later in pairwise(heard[name])]
        assert all(is_ >= least for is_, least in zip(seen, gaps, strict=True)), f"{name}: {seen}"
    masks = {broker.address: "<broker>", f"{recipients.url}/{case.key}": "<recipients>"}
    delivered = {
        name: _counted(_entry(request, masks) for request in requests) for name, requests in heard.items()
    }
    parts = {
        "posted": [f"{status} POST /<namespace>/<broker>" for status in statuses],
        "delivered": delivered,
    }
    return {name: part for name, part in parts.items() if part}


def _post(broker: ServedBroker, headers: Headers, body: bytes) -> int:
    """Send an event to the broker and return the status of the answer."""
    return broker.client.request(
        "POST", broker.url, body=body, headers=dict(headers), timeout=LONGEST_SECONDS, retries=False
    ).status


def _entry(request: HeardRequest, masks: Mapping[str, str]) -> Entries:
    headers = {name.lower(): value for name, value in sorted(request.headers.items())}
    shown = {
        name: _masked(name, value, masks) for name, value in headers.items() if name not in OF_THE_CLIENT
    }
    body = request.body.decode("utf-8", "backslashreplace")
    return {"event": headers.get("ce-id", ""), "headers": shown, "body": body}


def _masked(name: str, value: str, masks: Mapping[str, str]) -> str:
    if name == "ce-knativearrivaltime":
        return TIME.sub("<time>", value)
    if name == "ce-knativeerrordata":
        return _error_data(value)
    for text, mask in masks.items():
        value = value.replace(text, mask)
    return value


def _counted(entries: Iterable[Entries]) -> list[Entries]:
    """Return each different entry once, with the number of its `times` if there are several.

    They are sorted, because brokers keep no order.
    """
    counts = Counter(json.dumps(entry, sort_keys=True) for entry in entries)
    different = ((json.loads(text), count) for text, count in sorted(counts.items()))
    return [{**entry, "times": count} if count > 1 else entry for entry, count in different]


def _error_data(value: str) -> str:
    """Return the decoded text of `knativeerrordata`; the words of an HTTP client are not recorded."""
    text = base64.b64decode(value[: len(value) // 4 * 4]).decode("utf-8", "backslashreplace")
    if text.startswith("dispatch error: "):
        return "<dispatch error>"
    return text

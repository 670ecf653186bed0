"""Contract cases of a broker, and the recording of what it answered and delivered.

A case declares a broker with triggers, posts events to it and asserts one rule. The answers of the ingress
and all deliveries are also recorded, with addresses and times replaced by placeholders, and compared with the
recording of Knative's broker (`answers/`).
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import urllib3

from tests.contract.broker.recipients import LONGEST_SECONDS, HeardRequest, Reaction, Recipients

BrokerRun = Callable[["BrokerConversation"], None]
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
        name: the rule, as a sentence.
        run: posts events and asserts the rule.
        subject: name of the case's module.
        triggers: the `spec` of each trigger by name, without broker and subscriber; the subscriber has the
            trigger's name.
        delivery: `spec.delivery` of the broker; None leaves it out.
    """

    name: str
    run: BrokerRun
    subject: str
    triggers: Mapping[str, Mapping[str, Any]]
    delivery: Mapping[str, Any] | None

    @property
    def key(self) -> str:
        """The case's key in the files of `answers/`."""
        return self.run.__name__

    @property
    def broker(self) -> str:
        """The name of the case's broker."""
        return f"{self.subject}-{self.key}".replace("_", "-")


class BrokerCases:
    """A decorator that collects the cases of one module; a case's name is the first line of its docstring."""

    def __init__(self, module: str) -> None:
        self.all: list[BrokerCase] = []
        self._subject = module.rpartition(".")[2]

    def __call__(
        self,
        triggers: Mapping[str, Mapping[str, Any]],
        *,
        delivery: Mapping[str, Any] | None = None,
    ) -> Callable[[BrokerRun], BrokerRun]:
        """Return the decorator that adds a function as a case."""

        def collect(run: BrokerRun) -> BrokerRun:
            name = (run.__doc__ or "").partition("\n")[0]
            assert name, f"{run.__name__} does not say which rule it proves"
            self.all.append(BrokerCase(name, run, self._subject, triggers, delivery))
            return run

        return collect


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


@dataclass
class BrokerConversation:
    """A client and the recipients of one case, with a recording of both.

    Attributes:
        case: the case that runs.
        broker: the broker of the case.
        recipients: the server of all recipients.
        posted: the answers of the broker so far.
    """

    case: BrokerCase
    broker: ServedBroker
    recipients: Recipients
    posted: list[str] = field(default_factory=list)
    _last_post: float = field(default_factory=time.monotonic)

    def react(self, name: str, *reactions: Reaction) -> None:
        """Set the answers of a recipient, in order; the last one is repeated."""
        self.recipients.react(self.case.key, name, *reactions)

    def react_to(self, name: str, reactions: Mapping[str, Reaction]) -> None:
        """Set the answers of a recipient by the id of the event."""
        self.recipients.react_to(self.case.key, name, reactions)

    def post(self, headers: Headers, body: bytes = b"") -> int:
        """Send an event to the broker and return the status of the answer."""
        answer = self.broker.client.request(
            "POST", self.broker.url, body=body, headers=dict(headers), timeout=LONGEST_SECONDS, retries=False
        )
        self._last_post = time.monotonic()
        self.posted.append(f"{answer.status} POST /<namespace>/<broker>")
        return answer.status

    def wait(self, name: str, count: int = 1) -> list[HeardRequest]:
        """Return the deliveries to a recipient once there are so many.

        Raises:
            AssertionError: there are not.
        """
        reached = self.recipients.wait(self.case.key, name, count)
        heard = self.recipients.heard(self.case.key, name)
        assert reached, f"{name} got {len(heard)} of {count} deliveries"
        return heard

    def settled(self, name: str) -> list[HeardRequest]:
        """Return the deliveries to a recipient once nothing is going to be delivered any more."""
        self.broker.settle(self._last_post)
        return self.recipients.heard(self.case.key, name)

    def who_heard(self) -> set[str]:
        """Return the names of all recipients with deliveries once nothing is going to be delivered."""
        self.broker.settle(self._last_post)
        return set(self.recipients.of_case(self.case.key))

    def entries(self) -> Entries:
        """Return the recording: answers to events, and the deliveries to each recipient."""
        self.broker.settle(self._last_post)
        heard = self.recipients.of_case(self.case.key)
        deliveries = {name: _counted(map(self._entry, requests)) for name, requests in heard.items()}
        parts = {"posted": self.posted, "delivered": deliveries}
        return {name: part for name, part in parts.items() if part}

    def _entry(self, request: HeardRequest) -> Entries:
        headers = {name.lower(): value for name, value in request.headers.items()}
        shown = {
            name: self._masked(name, value)
            for name, value in sorted(headers.items())
            if name not in OF_THE_CLIENT
        }
        body = request.body.decode("utf-8", "backslashreplace")
        return {"event": headers.get("ce-id", ""), "headers": shown, "body": body}

    def _masked(self, name: str, value: str) -> str:
        if name == "ce-knativearrivaltime":
            return TIME.sub("<time>", value)
        if name == "ce-knativeerrordata":
            return _error_data(value)
        value = value.replace(self.broker.address, "<broker>")
        return value.replace(f"{self.recipients.url}/{self.case.key}", "<recipients>")


def attempts(heard: list[HeardRequest]) -> list[float]:
    """Return the seconds between consecutive deliveries."""
    return [later.at - earlier.at for earlier, later in pairwise(heard)]


def header(request: HeardRequest, name: str) -> str:
    """Return the value of a header of a delivery; empty if it has none."""
    return {key.lower(): value for key, value in request.headers.items()}.get(name.lower(), "")


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

"""Dead letters: an event that no function took, as a ConfigMap and back.

Knative sends the event as it was, with three extensions that tell who refused it and how (knative/eventing
v0.47, pkg/kncloudevents/event_dispatcher.go). After a time-out, and where the answer's body was no event, it
sends none of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import unquote, urlsplit

from muster.events.cloudevent import STRUCTURED, UnreadableEvent, receive
from muster.objects.resources import CONFIGMAPS

LABEL = "muster.dev/dead-letter"
SELECTOR = f"{LABEL}=true"
SIZE_LIMIT = 64 * 1024
"""Bytes of an event that are kept; above them its data is left out, and the next sweep has to do."""

DESTINATION, CODE, ANSWER = "knativeerrordest", "knativeerrorcode", "knativeerrordata"
ARRIVAL, TTL = "knativearrivaltime", "knativebrokerttl"
TURN = "musterredrive"
"""Extension that counts how often an event was sent again."""

BROKERS_OWN = {DESTINATION, CODE, ANSWER, ARRIVAL, TTL}
"""What a broker puts on an event; sent again, the event gets its own."""
_EVENT = "event.json"


@dataclass(frozen=True)
class DeadLetter:
    """An event that no function took.

    Attributes:
        event: the event as one JSON object (CloudEvents JSON format), without what the broker added.
        function: the name of the Service that failed; empty where the broker did not say.
        code: its HTTP status, as text; empty likewise.
        answer: what it answered, at most 768 characters.
        whole: False where the event was too large to keep its data.
    """

    event: Mapping[str, Any]
    function: str = ""
    code: str = ""
    answer: str = ""
    whole: bool = True

    @property
    def name(self) -> str:
        """The name of its ConfigMap: one for each turn of an event, however often the broker delivers it."""
        turn = self.event.get(TURN, "")
        told = "\n".join(map(str, (self.event["source"], self.event["id"], self.function, turn)))
        return f"dead-letter-{sha256(told.encode()).hexdigest()[:12]}"

    @property
    def about(self) -> str:
        """The object of the event, as `Job team-a/llama`; its subject or nothing where it names none."""
        attributes = self.event
        if attributes.get("kind") and attributes.get("name"):
            place = f"{attributes['namespace']}/" if attributes.get("namespace") else ""
            return f"{attributes['kind']} {place}{attributes['name']}"
        return str(attributes.get("subject", ""))

    def again(self) -> dict[str, Any]:
        """The event to send once more."""
        turn = str(self.event.get(TURN, "0"))
        return {**self.event, TURN: str(int(turn) + 1 if turn.isdecimal() else 1)}


def of_request(headers: Mapping[str, str], body: bytes) -> DeadLetter:
    """The dead letter in a request, in binary or structured mode.

    Raises:
        UnreadableEvent: it is no CloudEvent.
    """
    event = _event(headers, body)
    kept = {name: value for name, value in event.items() if name not in BROKERS_OWN}
    whole = len(json.dumps(kept)) <= SIZE_LIMIT
    if not whole:
        kept = {name: value for name, value in kept.items() if not name.startswith("data")}
    host = urlsplit(str(event.get(DESTINATION, ""))).hostname or ""
    return DeadLetter(
        kept, host.partition(".")[0], str(event.get(CODE, "")), _decoded(str(event.get(ANSWER, ""))), whole
    )


def to_config_map(letter: DeadLetter, namespace: str) -> dict[str, Any]:
    """The ConfigMap that keeps a dead letter."""
    told = {"function": letter.function, "code": letter.code, "answer": letter.answer, "about": letter.about}
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {
            "name": letter.name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "muster", LABEL: "true"},
        },
        "data": {
            **{key: value for key, value in told.items() if value},
            "whole": str(letter.whole).lower(),
            _EVENT: json.dumps(letter.event, indent=1),
        },
    }


def from_config_map(config_map: Mapping[str, Any]) -> DeadLetter:
    """The dead letter that a ConfigMap keeps.

    Raises:
        ValueError: somebody changed it, and it holds no event any more.
    """
    data = config_map.get("data") or {}
    try:
        event = json.loads(data.get(_EVENT, ""))
        receive({"content-type": STRUCTURED}, data[_EVENT].encode())
    except (UnreadableEvent, json.JSONDecodeError) as error:
        raise ValueError(f"{config_map['metadata']['name']}: {_EVENT} is no CloudEvent: {error}") from None
    told = {key: data.get(key, "") for key in ("function", "code", "answer")}
    return DeadLetter(event, **told, whole=data.get("whole") != "false")


def _event(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    received = receive(headers, body)
    known = {name.lower(): value for name, value in headers.items()}
    content_type = known.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() == STRUCTURED:
        return {name: value for name, value in json.loads(body).items() if value is not None}
    event: dict[str, Any] = {
        name[3:]: unquote(value) for name, value in known.items() if name.startswith("ce-")
    }
    if content_type:
        event["datacontenttype"] = content_type
    if isinstance(received.data, bytes):
        return {**event, "data_base64": base64.b64encode(received.data).decode()}
    return event if received.data is None else {**event, "data": received.data}


def _decoded(text: str) -> str:
    """What the broker cut off after 1024 characters of base64, as far as it goes."""
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode(errors="replace").strip("\x00")
    except ValueError:
        return ""

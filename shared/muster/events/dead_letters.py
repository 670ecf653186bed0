"""Dead letters: undelivered events, converted to ConfigMaps and back.

Knative sends the event unchanged, with three extensions that name the failed destination, its status and its
answer (knative/eventing v0.47, pkg/kncloudevents/event_dispatcher.go). After a timeout, or if the answer had
a body that is no event, it sends none of them.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any
from urllib.parse import unquote, urlsplit

from muster.events.cloudevent import (
    MEDIA_TYPE,
    MOST_ATTRIBUTES,
    REQUIRED,
    STRUCTURED,
    UNLIMITED,
    EventLimits,
    FloatText,
    JsonReader,
    UnreadableEvent,
    receive,
)
from muster.objects.json_members import members_of
from muster.objects.resources import CONFIGMAPS

LABEL = "muster.dev/dead-letter"
SELECTOR = f"{LABEL}=true"
DESTINATION, CODE, ANSWER = "knativeerrordest", "knativeerrorcode", "knativeerrordata"
ARRIVAL, TTL = "knativearrivaltime", "knativebrokerttl"
REDRIVES = "musterredrive"
"""Extension with the number of redrives of an event."""
MOST_REDRIVES = 999_999
"""The count stops there: a sender may write any number of digits."""

BROKER_EXTENSIONS = {DESTINATION, CODE, ANSWER, ARRIVAL, TTL}
"""Extensions that a broker adds; they are removed before a redrive."""
_LETTER_NAME = re.compile(r"dead-letter-[0-9a-f]{12}")
"""The account policy of the step refuses every other name (eventing/security/accounts/dead-letter.yaml)."""
_EVENT = "event.json"
_NAMING = (*REQUIRED, "subject", "apiversion", "kind", "namespace", "name", REDRIVES)
"""The attributes that tell a letter from others; they are kept of an event whose attributes are too large."""
_CUT = 256
"""Characters of each of them that are kept then: 12 such attributes have at most 43 KiB in a ConfigMap."""
_STATUSES = range(100, 600)
_NAME = 63
"""Characters that are kept of a Service's name, which has no more, and of the path on it."""
MOST_MEMBERS = 2 * MOST_ATTRIBUTES
"""The most members of a structured event, null and repeated ones included: each takes three microseconds."""
_DECODER = json.JSONDecoder(parse_float=FloatText)


class RawJson(str):
    """JSON as its sender wrote it, which is stored as it is: to write 48 KB of numbers again takes 4 ms."""

    __slots__ = ()


@dataclass(frozen=True)
class DeadLetter:
    """An event that was not delivered.

    Attributes:
        event: the event as a JSON object (CloudEvents JSON format), without the broker's extensions; the data
            of a request that was just received as RawJson.
        function: the name of the Service that failed, with the path if it has one; "" if unknown.
        code: the HTTP status of its answer as text; "" if unknown.
        answer: the body of its answer, at most 768 characters.
        whole: False if the event was too large to keep its data.
    """

    event: Mapping[str, Any]
    function: str = ""
    code: str = ""
    answer: str = ""
    whole: bool = True

    @property
    def name(self) -> str:
        """The name of its ConfigMap, the same for repeated deliveries, another one after each redrive."""
        redrives = self.event.get(REDRIVES, "")
        identity = "\n".join(map(str, (self.event["source"], self.event["id"], self.function, redrives)))
        return f"dead-letter-{sha256(identity.encode()).hexdigest()[:12]}"

    @property
    def about(self) -> str:
        """The object of the event, such as `Job team-a/llama`; without one the event's subject, or ""."""
        attributes = self.event
        if attributes.get("kind") and attributes.get("name"):
            prefix = f"{attributes['namespace']}/" if attributes.get("namespace") else ""
            return f"{attributes['kind']} {prefix}{attributes['name']}"
        return str(attributes.get("subject", ""))

    def again(self) -> dict[str, Any]:
        """Return the event with its number of redrives increased, to be sent again."""
        redrives = _number(self.event.get(REDRIVES, ""), MOST_REDRIVES) or 0
        return {**self.event, REDRIVES: str(min(redrives + 1, MOST_REDRIVES))}


def is_name(name: str) -> bool:
    """Whether a ConfigMap of this name can be a dead letter."""
    return _LETTER_NAME.fullmatch(name) is not None


def of_request(headers: Mapping[str, str], body: bytes, limits: EventLimits = UNLIMITED) -> DeadLetter:
    """Return the dead letter of a request, in binary or structured mode.

    Raises:
        UnreadableEvent: the request is no CloudEvent, or is beyond a limit.
    """
    event = _event(headers, body, limits)
    code = _number(event.get(CODE, ""), _STATUSES.stop - 1)
    return DeadLetter(
        {name: value for name, value in event.items() if name not in BROKER_EXTENSIONS},
        _service(str(event.get(DESTINATION, ""))),
        str(code) if code in _STATUSES else "",
        _decoded(str(event.get(ANSWER, ""))),
    )


def cut(letter: DeadLetter, size: int) -> DeadLetter:
    """Return the letter if its ConfigMap has at most `size` bytes, else with as much of it as is kept then.

    The event's data goes first, then all attributes but the names of the event, cut to 256 characters each.
    """
    if _size(letter) <= size:
        return letter
    light = replace(without_data(letter), whole=False)
    return light if _size(light) <= size else outline(light)


def outline(letter: DeadLetter) -> DeadLetter:
    """Return the letter with the names of its event alone, and each of its texts cut to 256 characters."""
    names = {name: str(letter.event[name])[:_CUT] for name in _NAMING if name in letter.event}
    function, code, answer = (text[:_CUT] for text in (letter.function, letter.code, letter.answer))
    return DeadLetter(names, function, code, answer, letter.whole)


def without_data(letter: DeadLetter) -> DeadLetter:
    """Return the letter with the attributes of its event alone."""
    attributes = {name: value for name, value in letter.event.items() if not name.startswith("data")}
    return replace(letter, event=attributes)


def to_config_map(letter: DeadLetter, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap of a dead letter."""
    details = {
        "function": letter.function,
        "code": letter.code,
        "answer": letter.answer,
        "about": letter.about,
    }
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {
            "name": letter.name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "muster", LABEL: "true"},
        },
        "data": {
            **{key: value for key, value in details.items() if value},
            "whole": str(letter.whole).lower(),
            _EVENT: _lines(letter.event),
        },
    }


def from_config_map(config_map: Mapping[str, Any]) -> DeadLetter:
    """Return the dead letter of a ConfigMap.

    Raises:
        ValueError: the ConfigMap was changed and has no valid event any more.
    """
    data = config_map.get("data") or {}
    text = data.get(_EVENT, "")
    try:
        receive({"content-type": STRUCTURED}, text.encode())
    except UnreadableEvent as error:
        raise ValueError(f"{config_map['metadata']['name']}: {_EVENT} is not a CloudEvent: {error}") from None
    details = {key: data.get(key, "") for key in ("function", "code", "answer")}
    return DeadLetter(json.loads(text), **details, whole=data.get("whole") != "false")


def _lines(event: Mapping[str, Any]) -> str:
    """Return an event as JSON, with a line for each attribute and one for all its data.

    `json.dumps` with indentation is Python code, and writes the depth of each value before it.
    """
    lines = (f" {json.dumps(name)}: {_json(value)}" for name, value in event.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _json(value: Any) -> str:
    return value if isinstance(value, RawJson) else json.dumps(value)


def _size(letter: DeadLetter) -> int:
    """Return the bytes of a letter's ConfigMap as it is sent; a namespace has at most 63."""
    return len(json.dumps(to_config_map(letter, "x" * 63)))


def _number(value: Any, largest: int) -> int | None:
    """Return the number of a text of ASCII digits, or None if it is no such text or a larger number."""
    text = str(value)
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(largest))
    return int(text) if is_number and int(text) <= largest else None


def _service(url: str) -> str:
    """Return Service and path of a URL inside the cluster, `muster/create-workload`; "" without a host."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    service, path = host.partition(".")[0][:_NAME], parts.path.strip("/")[:_NAME]
    return f"{service}/{path}" if service and path else service


def _event(headers: Mapping[str, str], body: bytes, limits: EventLimits) -> dict[str, Any]:
    received = receive(headers, body, limits, JsonReader(_with_raw_data, _raw))
    if received.members:
        return dict(received.members)
    lower_case = {name.lower(): value for name, value in headers.items()}
    content_type = lower_case.get("content-type", "")
    event: dict[str, Any] = {
        name[3:]: unquote(value) for name, value in lower_case.items() if name.startswith("ce-")
    }
    if content_type:
        known = MEDIA_TYPE.fullmatch(content_type)
        event["datacontenttype"] = content_type if known else "application/octet-stream"
    if isinstance(received.data, bytes):
        return {**event, "data_base64": base64.b64encode(received.data).decode()}
    return event if received.data is None else {**event, "data": received.data}


def _decoded(text: str) -> str:
    """Return the decoded text of base64 that the broker cut at 1024 characters."""
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode(errors="replace").strip("\x00")
    except ValueError:
        return ""


def _raw(text: str) -> RawJson | None:
    """Return JSON as it is; None for `null`.

    Raises:
        ValueError: it is no JSON.
    """
    return None if _DECODER.decode(text) is None else RawJson(text.strip())


def _with_raw_data(text: str) -> dict[str, Any]:
    """Return the members of a JSON object, the data as they are.

    Raises:
        ValueError: it is no JSON object, or has more members than an event.
    """
    members: dict[str, Any] = {}
    for number, member in enumerate(members_of(text, _DECODER)):
        if number > MOST_MEMBERS:
            raise ValueError(f"more than {MOST_MEMBERS} members")
        is_data = member.name == "data" and member.value is not None
        members[member.name] = RawJson(member.raw.strip()) if is_data else member.value
    return members

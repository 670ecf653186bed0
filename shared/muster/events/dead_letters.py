"""Dead letters: events that no function accepted, as ConfigMaps and back.

Knative sends the event unchanged, with three extensions that name the failed destination, its status and its
answer (knative/eventing v0.47, pkg/kncloudevents/event_dispatcher.go); after a timeout without them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from cloudevents.core.formats.json import JSONFormat

from muster.events.parse import STRUCTURED, UnreadableEvent, receive
from muster.objects.resources import CONFIGMAPS

LABEL = "muster.dev/dead-letter"
SELECTOR = f"{LABEL}=true"
PREFIX = "dead-letter-"
"""ConfigMaps with other names are never deleted."""
MOST_BYTES = 64 * 1024
"""Of an event with more bytes only the attributes are kept; the next sweep repairs what it was about."""

DESTINATION, CODE, ANSWER = "knativeerrordest", "knativeerrorcode", "knativeerrordata"
BROKER_EXTENSIONS = {DESTINATION, CODE, ANSWER, "knativearrivaltime", "knativebrokerttl"}
"""Extensions that a broker adds; they are removed before a redrive."""
REDRIVES = "musterredrive"
"""Extension with the number of redrives of an event."""
_EVENT = "event.json"


@dataclass(frozen=True)
class DeadLetter:
    """An event that was not delivered, in CloudEvents' JSON format without the broker's extensions.

    `function` is the Service that failed, with its path; `code` and `answer` are HTTP status and body of its
    answer. `whole` is false if the event was too large to keep its data.
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
        return f"{PREFIX}{sha256(identity.encode()).hexdigest()[:12]}"

    @property
    def about(self) -> str:
        """The object of the event, such as `Job team-a/llama`; without one the event's subject, or ""."""
        kind, namespace, name = (self.event.get(field) for field in ("kind", "namespace", "name"))
        if kind and name:
            return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
        return str(self.event.get("subject", ""))

    def again(self) -> dict[str, Any]:
        """Return the event with its number of redrives increased, to be sent again."""
        redrives = str(self.event.get(REDRIVES, ""))
        return {**self.event, REDRIVES: str(int(redrives) + 1 if redrives.isdecimal() else 1)}


def of_request(headers: Mapping[str, str], body: bytes) -> DeadLetter:
    """Return the dead letter of a request, in binary or structured mode."""
    text = JSONFormat().write(receive(headers, body))
    event = json.loads(text)
    whole = len(text) <= MOST_BYTES
    dropped = BROKER_EXTENSIONS if whole else {*BROKER_EXTENSIONS, "data", "data_base64"}
    return DeadLetter(
        {name: value for name, value in event.items() if name not in dropped},
        _service(str(event.get(DESTINATION, ""))),
        str(event.get(CODE, "")),
        _answer(str(event.get(ANSWER, ""))),
        whole,
    )


def to_config_map(letter: DeadLetter, namespace: str) -> dict[str, Any]:
    """Return the ConfigMap of a dead letter."""
    details = {name: getattr(letter, name) for name in ("function", "code", "answer", "about")}
    details |= {"whole": str(letter.whole).lower(), _EVENT: json.dumps(letter.event)}
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {
            "name": letter.name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": "muster", LABEL: "true"},
        },
        "data": {key: value for key, value in details.items() if value},
    }


def from_config_map(config_map: Mapping[str, Any]) -> DeadLetter:
    """Return the dead letter of a ConfigMap."""
    data = config_map.get("data") or {}
    text = data.get(_EVENT, "")
    try:
        receive({"content-type": STRUCTURED}, text.encode())
    except UnreadableEvent as error:
        raise ValueError(f"{config_map['metadata']['name']}: {_EVENT} is not a CloudEvent: {error}") from None
    details = {key: data.get(key, "") for key in ("function", "code", "answer")}
    return DeadLetter(json.loads(text), **details, whole=data.get("whole") != "false")


def _service(url: str) -> str:
    parts = urlsplit(url)
    return f"{(parts.hostname or '').partition('.')[0]}/{parts.path.strip('/')}".rstrip("/")


def _answer(text: str) -> str:
    """Return the decoded text of base64 that the broker cut at 1024 characters."""
    return base64.b64decode(text[: len(text) // 4 * 4]).decode(errors="replace").strip("\x00")

"""List the dead letters of a cluster and send them to the broker again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.cluster.errors import ApiGone
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.cluster.read import collect
from muster.events.cloudevent import STRUCTURED
from muster.events.dead_letters import SELECTOR, DeadLetter, from_config_map, outline
from muster.objects.resources import CONFIGMAPS, Resource
from muster.objects.text import cut_to
from muster.policy.limits import MESSAGE_LENGTH
from muster.policy.owner_status.conditions import MESSAGE_LIMIT
from muster.simulator.broker import NoAnswerError
from muster.simulator.broker.targets import HttpTarget

BROKERS = Resource("eventing.knative.dev", "v1", "brokers", "Broker")
_ADDRESS = re.compile(
    r"(https?)://(broker-ingress|kafka-broker-ingress)\.knative-eventing\.svc(?:\.[a-z0-9.-]+)?(/.*)"
)
"""The address of a broker at an ingress of Knative Eventing: Knative's own, or that on Kafka."""
_PORTS = {"http": 80, "https": 443}
TIMEOUT_SECONDS = 10.0
"""How long a broker may take to answer."""

Sender = Callable[[Mapping[str, Any]], str]
"""Sends a structured CloudEvent; returns why the broker refused it, or ""."""


class NoBrokerError(Exception):
    """There is no broker to send to; the message says what to do."""


@dataclass(frozen=True)
class StoredLetter:
    """What is kept of a ConfigMap that holds a dead letter; there may be hundreds of a megabyte.

    Attributes:
        name: of the ConfigMap.
        uid: of the ConfigMap.
        since: when it was created, RFC 3339.
        letter: the outline of the dead letter; None if the ConfigMap cannot be parsed.
        error: why the letter cannot be sent again; "" if it can.
    """

    name: str
    uid: str
    since: str
    letter: DeadLetter | None
    error: str


MOST_LETTERS = 10_000
"""The most letters that are listed: dead-letter keeps 100, but who may write ConfigMaps beside it can make
any number, of which each may have texts of 12 KB."""


def list_letters(
    client: Client, namespace: str, *, reading: Callable[[str], object] = lambda _step: None
) -> list[StoredLetter]:
    """Return the dead letters of a namespace, oldest first; one page of them is in memory at a time.

    Of more than MOST_LETTERS the first by name are returned.

    Args:
        client: of the API server.
        namespace: of Muster.
        reading: called with `letters`, and with `letter 7` and so on before each is read.

    Raises:
        ClusterError: the ConfigMaps cannot be listed.
    """

    def read(bodies: Iterable[Object]) -> Iterator[StoredLetter]:
        for number, body in enumerate(bodies, start=1):
            reading(f"letter {number}")
            if number <= MOST_LETTERS:
                yield _read(body)

    reading("letters")
    letters = collect(client, CONFIGMAPS, read, namespace, labels=SELECTOR)
    return sorted(letters, key=lambda stored: (stored.since, stored.name))


def redrive(client: Client, namespace: str, stored: StoredLetter, send: Sender) -> str:
    """Read a dead letter, send it again, and delete it once the broker has accepted it.

    If a function fails on the event again, it is stored under another name, so the deletion here does not
    remove the new letter.

    Returns:
        Why the letter was not sent or not deleted, such as `kept: no answer`; "" if it was. Nothing is
        raised, so that one letter never holds up the others.
    """
    if stored.error:
        return f"kept: {stored.error}"
    try:
        body = client.get(CONFIGMAPS, stored.name, namespace)
        if body is None or body["metadata"]["uid"] != stored.uid:
            return "not sent: it was deleted meanwhile"
        error = send(from_config_map(body).again())
        if not error:
            forget(client, namespace, stored)
    except Exception as unforeseen:  # noqa: BLE001 - the other letters can be sent all the same
        error = f"{type(unforeseen).__name__}: {unforeseen}"
    return f"kept: {error}" if error else ""


def forget(client: Client, namespace: str, stored: StoredLetter) -> None:
    """Delete a dead letter."""
    client.delete(CONFIGMAPS, stored.name, namespace, uid=stored.uid)


def to_url(url: str) -> Sender:
    """Return a sender that POSTs to the URL of a broker.

    In structured mode, because an attribute may have characters that a header cannot have. A redirect counts
    as a refusal: it may lead to a page that answers 200, and the letter would be deleted.
    """
    target = HttpTarget(url, connections=1, redirected=False)
    headers = {"Content-Type": STRUCTURED}

    def send(event: Mapping[str, Any]) -> str:
        try:
            status = target(headers, json.dumps(event).encode(), TIMEOUT_SECONDS).status
        except NoAnswerError as error:
            return str(error)
        return _refusal(url, status)

    return send


def through_api_server(client: Client, namespace: str, broker: str) -> Sender:
    """Return a sender that reaches a broker inside the cluster through the API server's Service proxy.

    Needs `create` on `services/proxy` in the namespace of the broker's ingress. Whoever may write the status
    of the broker could name any Service in its address, so only the ingresses of Knative are addressed.

    Raises:
        NoBrokerError: the broker does not exist, has no address yet, or one elsewhere.
    """
    try:
        live = client.get(BROKERS, broker, namespace)
    except ApiGone:
        live = None
    url = str((((live or {}).get("status") or {}).get("address") or {}).get("url") or "")
    if not url:
        raise NoBrokerError(
            f"Broker {namespace}/{broker} {'has no address yet' if live else 'does not exist'}; "
            "set another one with --to"
        )
    address = _ADDRESS.fullmatch(url)
    path = f"/{namespace}/{broker}"
    if address is None or address[3] != path:
        shown = cut_to(url, MESSAGE_LENGTH)
        raise NoBrokerError(
            f"Broker {namespace}/{broker} has the address {shown}, which is not its path at an "
            "ingress in knative-eventing; if it is right, reach it with --to"
        )
    service = f"{address[1]}:{address[2]}:{_PORTS[address[1]]}"
    url_path = f"/api/v1/namespaces/knative-eventing/services/{service}/proxy{path}"

    def send(event: Mapping[str, Any]) -> str:
        status, answer = client.raw("POST", url_path, body=event, content_type="application/cloudevents+json")
        return _refusal(url, status, answer.get("message", "") if isinstance(answer, dict) else "")

    return send


def _refusal(url: str, status: int, message: object = "") -> str:
    if status in range(200, 300):
        return ""
    return f"{url} answered {status} {cut_to(str(message), MESSAGE_LIMIT)}".rstrip()


def _read(body: Object) -> StoredLetter:
    metadata = body["metadata"]
    letter, reason = None, ""
    try:
        letter = outline(from_config_map(body))
    except ValueError as error:
        reason = cut_to(str(error), MESSAGE_LIMIT)
    if letter is not None and not letter.whole:
        reason = "data was too large to keep; the next sweep covers its object"
    return StoredLetter(metadata["name"], metadata["uid"], metadata["creationTimestamp"], letter, reason)

"""Dead letters of a cluster: which there are, and how they get back into the stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from muster.cluster.client import Client
from muster.cluster.errors import ApiGone
from muster.events.dead_letters import SELECTOR, DeadLetter, from_config_map
from muster.objects.resources import CONFIGMAPS, Resource
from muster.simulator.broker import CloudEvent, NoAnswerError
from muster.simulator.broker.targets import HttpTarget

BROKERS = Resource("eventing.knative.dev", "v1", "brokers", "Broker")
SECONDS = 10.0

Sender = Callable[[Mapping[str, Any]], str]
"""Sends a structured event; in words why it was not taken, or nothing."""


class NoBrokerError(Exception):
    """There is no broker to send to; the message says what to do."""


@dataclass(frozen=True)
class Kept:
    """One dead letter of a cluster.

    Attributes:
        name: of its ConfigMap.
        uid: likewise.
        since: when it was stored, RFC 3339.
        letter: what it holds; None where somebody made it unreadable.
        trouble: why it cannot be sent again; empty where it can.
    """

    name: str
    uid: str
    since: str
    letter: DeadLetter | None
    trouble: str


def kept(client: Client, namespace: str) -> list[Kept]:
    """All dead letters, oldest first."""
    found = [_read(body) for body in client.list(CONFIGMAPS, namespace, labels=SELECTOR)]
    return sorted(found, key=lambda one: (one.since, one.name))


def redrive(client: Client, namespace: str, one: Kept, send: Sender) -> str:
    """Send a dead letter again, and forget it once it was taken; in words why not, or nothing.

    Its name differs from turn to turn, so one that fails again meanwhile is not what is forgotten here.
    """
    if one.letter is None or one.trouble:
        return one.trouble
    trouble = send(one.letter.again())
    if not trouble:
        forget(client, namespace, one)
    return trouble


def forget(client: Client, namespace: str, one: Kept) -> None:
    """Delete a dead letter."""
    client.delete(CONFIGMAPS, one.name, namespace, uid=one.uid)


def to_url(url: str) -> Sender:
    """Send to a broker by its URL."""
    target = HttpTarget(url, connections=1)

    def send(event: Mapping[str, Any]) -> str:
        again = CloudEvent.from_structured(event)
        try:
            status = target(again.headers(), again.data, SECONDS).status
        except NoAnswerError as error:
            return str(error)
        return _refusal(url, status)

    return send


def through_api_server(client: Client, namespace: str, broker: str) -> Sender:
    """Send to a broker that only the cluster can reach, by the API server's proxy of Services.

    Needs `create` on `services/proxy` in the namespace of the broker's ingress.

    Raises:
        NoBrokerError: there is none, or it is not ready.
    """
    try:
        found = client.get(BROKERS, broker, namespace)
    except ApiGone:
        found = None
    url = (((found or {}).get("status") or {}).get("address") or {}).get("url", "")
    if not url:
        raise NoBrokerError(
            f"Broker {namespace}/{broker} {'has no address yet' if found else 'does not exist'}; "
            "name another one by --to"
        )
    parts = urlsplit(url)
    service, _, rest = (parts.hostname or "").partition(".")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    ingress = f"{rest.partition('.')[0]}/services/{parts.scheme}:{service}:{port}"
    path = f"/api/v1/namespaces/{ingress}/proxy{parts.path}"

    def send(event: Mapping[str, Any]) -> str:
        status, said = client.raw("POST", path, body=event, content_type="application/cloudevents+json")
        return _refusal(url, status, said.get("message", "") if isinstance(said, dict) else "")

    return send


def _refusal(url: str, status: int, words: str = "") -> str:
    return "" if status in range(200, 300) else f"{url} answered {status} {words}".rstrip()


def _read(body: Mapping[str, Any]) -> Kept:
    metadata = body["metadata"]
    letter, trouble = None, ""
    try:
        letter = from_config_map(body)
    except ValueError as error:
        trouble = str(error)
    if letter is not None and not letter.whole:
        trouble = "was too large to keep its data; the next sweep repairs what it was about"
    return Kept(metadata["name"], metadata["uid"], metadata["creationTimestamp"], letter, trouble)

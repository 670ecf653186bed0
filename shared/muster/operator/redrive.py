"""List the dead letters of a cluster and send them to the broker again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from muster.cluster.errors import ApiGone, ClusterError
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.events.dead_letters import SELECTOR, DeadLetter, from_config_map
from muster.events.parse import STRUCTURED
from muster.objects.resources import CONFIGMAPS, Resource
from muster.simulator.broker import HttpTarget, NoAnswerError

BROKERS = Resource("eventing.knative.dev", "v1", "brokers", "Broker")
BROKER = "muster"
"""The name of Muster's broker."""

TIMEOUT_SECONDS = 10.0
"""How long a broker may take to answer."""

Sender = Callable[[Mapping[str, Any]], str]
"""Sends a structured CloudEvent; returns why the broker refused it, or ""."""


class NoBrokerError(Exception):
    """There is no broker to send to; the message says what to do."""


@dataclass(frozen=True)
class StoredLetter:
    """The ConfigMap of a dead letter (None if it cannot be parsed); `error` is why it cannot be sent."""

    name: str
    uid: str
    since: str
    letter: DeadLetter | None
    error: str = ""


def list_letters(client: Client, namespace: str) -> list[StoredLetter]:
    """Return the dead letters of a namespace, oldest first.

    Raises:
        ClusterError: the ConfigMaps cannot be listed.
    """
    stored = map(_stored, client.list(CONFIGMAPS, namespace, labels=SELECTOR))
    return sorted(stored, key=lambda letter: (letter.since, letter.name))


def _stored(body: Object) -> StoredLetter:
    metadata = body["metadata"]
    place = metadata["name"], metadata["uid"], metadata["creationTimestamp"]
    try:
        letter = from_config_map(body)
    except ValueError as unreadable:
        return StoredLetter(*place, None, str(unreadable))
    error = "" if letter.whole else "data was too large to keep; the next sweep covers its object"
    return StoredLetter(*place, letter, error)


def redrive(client: Client, namespace: str, stored: StoredLetter, send: Sender) -> str:
    """Send a dead letter again, and delete it once accepted; return why it was kept, or ""."""
    if stored.letter is None or stored.error:
        return stored.error
    try:
        refusal = send(stored.letter.again())
        if not refusal:
            client.delete(CONFIGMAPS, stored.name, namespace, uid=stored.uid)
    except ClusterError as error:
        return str(error)
    return refusal


def to_url(url: str) -> Sender:
    """Return a sender that POSTs to the URL of a broker; a redirect counts as a refusal."""
    target = HttpTarget(url)

    def send(event: Mapping[str, Any]) -> str:
        try:
            answer = target({"Content-Type": STRUCTURED}, json.dumps(event).encode(), TIMEOUT_SECONDS)
        except NoAnswerError as error:
            return str(error)
        return _refusal(url, answer.status)

    return send


def through_api_server(client: Client, namespace: str) -> Sender:
    """Return a sender that reaches the broker inside the cluster through the API server's Service proxy.

    Needs `create` on `services/proxy` in the namespace of the broker's ingress.

    Raises:
        NoBrokerError: the broker does not exist, or has no address in the cluster.
    """
    try:
        live = client.get(BROKERS, BROKER, namespace)
    except ApiGone:
        live = None
    if live is None:
        raise NoBrokerError(f"Broker {namespace}/{BROKER} does not exist; set another one with --to")
    url = str(((live.get("status") or {}).get("address") or {}).get("url") or "")
    parts = urlsplit(url)
    service, _, domain = (parts.hostname or "").partition(".")
    ingress_namespace, _, domain = domain.partition(".")
    if domain.partition(".")[0] != "svc":
        raise NoBrokerError(
            f"Broker {namespace}/{BROKER} has no address of a Service yet, but {url!r}; set its URL with --to"
        )
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    proxy = (
        f"/api/v1/namespaces/{ingress_namespace}/services/{parts.scheme}:{service}:{port}/proxy{parts.path}"
    )

    def send(event: Mapping[str, Any]) -> str:
        status, answer = client.raw("POST", proxy, body=event, content_type=STRUCTURED)
        return _refusal(url, status, answer.get("message", "") if isinstance(answer, dict) else "")

    return send


def _refusal(url: str, status: int, message: str = "") -> str:
    return "" if status in range(200, 300) else f"{url} answered {status} {message}".rstrip()

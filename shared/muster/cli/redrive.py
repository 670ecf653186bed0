"""`muster redrive`: list dead letters, and send them to the broker again."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import BadInput, CommandError, echo_data, echo_table, output_option
from muster.cluster.errors import ApiGone, ClusterError
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.events.dead_letters import SELECTOR, DeadLetter, from_config_map
from muster.events.parse import STRUCTURED
from muster.objects.resources import CONFIGMAPS, Resource
from muster.simulator.broker import HttpTarget, NoAnswerError

HEADERS = ("NAME", "SINCE", "FUNCTION", "ANSWER", "EVENT", "ABOUT")
BROKERS = Resource("eventing.knative.dev", "v1", "brokers", "Broker")
BROKER = "muster"
"""The name of Muster's broker."""

TIMEOUT_SECONDS = 10.0
"""How long a broker may take to answer."""

Sender = Callable[[Mapping[str, Any]], str]
"""Sends a structured CloudEvent; returns why the broker refused it, or ""."""


@click.command("redrive")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Send all, oldest first.")
@click.option(
    "--to", "url", default="", metavar="URL", help="URL of a broker; default: the cluster's broker."
)
@click.option("-n", "--namespace", default="muster-system", show_default=True, help="Namespace of Muster.")
@output_option
@cluster_options
def command(
    names: tuple[str, ...],
    url: str,
    namespace: str,
    output: str,
    options: KubeconfigOptions,
    *,
    everything: bool,
) -> None:
    """List the events that no function accepted; with NAME or --all, send them to the broker again.

    An event that the broker accepts is deleted. If a function fails on it once more, it comes back under
    another name. Functions look at the cluster before they act, so an old event does no harm.

    A broker in the cluster is reached through the API server, which needs the right to `create`
    `services/proxy`; with --to any broker is reached directly, for example through a port-forward.
    The dead letters are ConfigMaps, which need the rights to `list` and `delete`.

    Exits with 1 if an event could not be sent.
    """
    if everything and names:
        raise BadInput("--all: cannot be used with NAME")
    with connected(options, "redrive") as cluster:
        cluster.require_namespace(namespace)
        listed = cluster.client.list(CONFIGMAPS, namespace, labels=SELECTOR)
        letters = sorted(listed, key=lambda body: (body["metadata"]["creationTimestamp"], _name(body)))
        if not names and not (everything and letters):
            _print(letters, output)
            return
        by_name = {_name(body): body for body in letters}
        for name in names:
            if name not in by_name:
                raise BadInput(f"{name}: no such dead letter")
        send = to_url(url) if url else through_api_server(cluster.client, namespace)
        failures = 0
        for body in letters if everything else [by_name[name] for name in names]:
            failure = _redrive(cluster.client, body, send)
            failures += bool(failure)
            click.echo(f"{_name(body)}: {f'kept: {failure}' if failure else 'sent again'}")
    if failures:
        raise SystemExit(1)


def _stored(body: Object) -> DeadLetter | str:
    """Return the dead letter of a ConfigMap, or why it cannot be read."""
    try:
        return from_config_map(body)
    except ValueError as unreadable:
        return str(unreadable)


def _redrive(client: Client, body: Object, send: Sender) -> str:
    """Send a dead letter again, and delete it once accepted; return why it was kept, or ""."""
    letter, metadata = _stored(body), body["metadata"]
    if isinstance(letter, str):
        return letter
    if not letter.whole:
        return "data was too large to keep; the next sweep covers its object"
    try:
        refusal = send(letter.again())
        if not refusal:
            client.delete(CONFIGMAPS, metadata["name"], metadata["namespace"], uid=metadata["uid"])
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
    """Return a sender that reaches the broker inside the cluster through the API server's Service proxy."""
    try:
        live = client.get(BROKERS, BROKER, namespace)
    except ApiGone:
        live = None
    if live is None:
        raise CommandError(f"Broker {namespace}/{BROKER} does not exist; set another one with --to")
    url = str(((live.get("status") or {}).get("address") or {}).get("url") or "")
    parts = urlsplit(url)
    service, ingress_namespace, *domain = [*(parts.hostname or "").split("."), "", ""]
    if domain[0] != "svc":
        raise CommandError(f"Broker {namespace}/{BROKER} has no address of a Service; set its URL with --to")
    port = parts.port or {"https": 443}.get(parts.scheme, 80)
    proxied = f"namespaces/{ingress_namespace}/services/{parts.scheme}:{service}:{port}/proxy{parts.path}"

    def send(event: Mapping[str, Any]) -> str:
        status, answer = client.raw("POST", f"/api/v1/{proxied}", body=event, content_type=STRUCTURED)
        return _refusal(url, status, answer.get("message", "") if isinstance(answer, dict) else "")

    return send


def _refusal(url: str, status: int, message: str = "") -> str:
    return "" if status in range(200, 300) else f"{url} answered {status} {message}".rstrip()


def _print(letters: Sequence[Object], output: str) -> None:
    rows = [(_name(body), body["metadata"]["creationTimestamp"], *_columns(body)) for body in letters]
    if output != "text":
        echo_data([dict(zip(map(str.lower, HEADERS), row, strict=True)) for row in rows], output)
    elif rows:
        short = [(*row[:3], textwrap.shorten(row[3], 80, placeholder=" ..."), *row[4:]) for row in rows]
        echo_table(HEADERS, short)
    else:
        click.echo("no dead letters")


def _columns(body: Object) -> tuple[str, ...]:
    letter = _stored(body)
    if isinstance(letter, str):
        return "-", letter, "-", "-"
    answer = " ".join(f"{letter.code} {letter.answer}".split()) or "no answer in time"
    return letter.function or "-", answer, letter.event["type"], letter.about or "-"


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])

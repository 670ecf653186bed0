"""`muster redrive`: events that no function took, and sending them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from muster.cli.bad_input import BadInput
from muster.cli.cluster_option import connected, kubeconfig_option, table
from muster.cluster.client import Client
from muster.operator.redrive import Kept, NoBrokerError, forget, kept, redrive, through_api_server, to_url

HEADS = ("NAME", "SINCE", "FUNCTION", "ANSWER", "EVENT", "ABOUT")


@click.command("redrive")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of them, oldest first.")
@click.option("--to", "url", default="", metavar="URL", help="Of a broker; else the cluster's own.")
@click.option("--broker", default="muster", show_default=True, help="Name of the cluster's broker.")
@click.option("--forget", "only_forget", is_flag=True, help="Delete them without sending them.")
@click.option("-n", "--namespace", default="muster-system", show_default=True, help="Muster's own.")
@kubeconfig_option
def command(
    names: tuple[str, ...],
    url: str,
    broker: str,
    namespace: str,
    kubeconfig: Path | None,
    *,
    everything: bool,
    only_forget: bool,
) -> None:
    """List the events that no function took; with NAME or --all, send them to the broker again.

    An event that the broker takes is forgotten. If a function fails on it once more, it comes back under
    another name. Functions look at the cluster before they act, so an old event does no harm.

    The broker is reached through the API server, which needs the right to `create` `services/proxy`; with
    --to it is reached directly, for example through a port-forward.

    Exits with 1 when an event could not be sent.
    """
    if everything and names:
        raise BadInput("--all: either all of them or those that are named")
    with connected(kubeconfig, "redrive") as client:
        found = kept(client, namespace)
        if not (everything or names):
            _print(found)
            return
        chosen = found if everything else _named(found, names)
        if only_forget:
            for one in chosen:
                forget(client, namespace, one)
                click.echo(f"{one.name}: forgotten")
            return
        _send(client, namespace, chosen, url, broker)


def _send(client: Client, namespace: str, chosen: Sequence[Kept], url: str, broker: str) -> None:
    if not chosen:
        click.echo("no dead letters")
        return
    try:
        send = to_url(url) if url else through_api_server(client, namespace, broker)
    except NoBrokerError as error:
        raise click.ClickException(str(error)) from None
    troubles = 0
    for one in chosen:
        trouble = redrive(client, namespace, one, send)
        troubles += bool(trouble)
        click.echo(f"{one.name}: {f'kept: {trouble}' if trouble else 'sent again'}")
    if troubles:
        raise SystemExit(1)


def _named(found: Sequence[Kept], names: Sequence[str]) -> list[Kept]:
    known = {one.name: one for one in found}
    for name in names:
        if name not in known:
            raise BadInput(f"{name}: there is no such dead letter")
    return [known[name] for name in names]


def _print(found: Sequence[Kept]) -> None:
    if not found:
        click.echo("no dead letters")
        return
    click.echo(table(HEADS, [_row(one) for one in found]))


def _row(one: Kept) -> tuple[str, ...]:
    if one.letter is None:
        return (one.name, one.since, "-", one.trouble, "-", "-")
    letter = one.letter
    answer = f"{letter.code} {letter.answer}".strip() or "none in time"
    # What a function answered may have lines; a row has one.
    return (
        one.name,
        one.since,
        letter.function or "-",
        " ".join(answer.split())[:80],
        str(letter.event["type"]),
        letter.about or "-",
    )

"""`muster redrive`: list dead letters, and send them to the broker again."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.arguments import BadInput
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.output import CommandError, echo, echo_items, echo_line, echo_lines, output_option, step_shown
from muster.cli.tables import table
from muster.cluster.http.client import Client
from muster.operator.redrive import (
    MOST_LETTERS,
    NoBrokerError,
    StoredLetter,
    forget,
    list_letters,
    redrive,
    through_api_server,
    to_url,
)

HEADERS = ("NAME", "SINCE", "FUNCTION", "ANSWER", "EVENT", "ABOUT")


@click.command("redrive")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Send all, oldest first.")
@click.option(
    "--to", "url", default="", metavar="URL", help="URL of a broker; default: the cluster's broker."
)
@click.option("--broker", default="muster", show_default=True, help="Name of the cluster's broker.")
@click.option("--forget", "only_forget", is_flag=True, help="Delete without sending.")
@click.option("-n", "--namespace", default="muster-system", show_default=True, help="Namespace of Muster.")
@output_option("text", "json", "yaml")
@cluster_options
def command(
    names: tuple[str, ...],
    url: str,
    broker: str,
    namespace: str,
    output: str,
    options: KubeconfigOptions,
    *,
    everything: bool,
    only_forget: bool,
) -> None:
    """List the events that no function accepted; with NAME or --all, send them to the broker again.

    An event that the broker accepts is deleted. If a function fails on it once more, it comes back under
    another name. Functions look at the cluster before they act, so an old event does no harm.

    A broker of Knative in knative-eventing is reached through the API server, which needs the right to
    `create` `services/proxy`; with --to any broker is reached directly, for example through a port-forward.
    The dead letters are ConfigMaps, which need the rights to `list`, `get` and `delete`.

    Exits with 1 if an event could not be sent.
    """
    if everything and names:
        raise BadInput("--all: cannot be used with NAME")
    with connected(options, "redrive") as cluster:
        client = cluster.client
        cluster.require_namespace(namespace, hint="; -n names the namespace of Muster")
        with step_shown("reading") as show:
            letters = list_letters(client, namespace, reading=show)
        if len(letters) == MOST_LETTERS:
            echo_line(f"muster: there may be more than these {MOST_LETTERS} dead letters", err=True)
        if not (everything or names):
            _print(letters, output)
            return
        chosen = letters if everything else _by_name(letters, names)
        if only_forget:
            for stored in chosen:
                forget(client, namespace, stored)
                echo_line(f"{stored.name}: deleted")
            return
        _send(client, namespace, chosen, url, broker)


def _send(client: Client, namespace: str, letters: Sequence[StoredLetter], url: str, broker: str) -> None:
    if not letters:
        echo("no dead letters")
        return
    try:
        send = to_url(url) if url else through_api_server(client, namespace, broker)
    except NoBrokerError as error:
        raise CommandError(str(error)) from None
    failures = 0
    with step_shown("sending") as show:
        for stored in letters:
            show(stored.name)
            failure = redrive(client, namespace, stored, send)
            show("")
            failures += bool(failure)
            echo_line(f"{stored.name}: {failure or 'sent again'}")
    if failures:
        raise SystemExit(1)


def _by_name(letters: Sequence[StoredLetter], names: Sequence[str]) -> list[StoredLetter]:
    by_name = {stored.name: stored for stored in letters}
    for name in names:
        if name not in by_name:
            raise BadInput(f"{name}: no such dead letter")
    return [by_name[name] for name in names]


def _print(letters: Sequence[StoredLetter], output: str) -> None:
    if output != "text":
        echo_items(
            [dict(zip(map(str.lower, HEADERS), _row(stored), strict=True)) for stored in letters], output
        )
    elif not letters:
        echo("no dead letters")
    else:
        echo_lines(table(HEADERS, [_row(stored) for stored in letters]), len(letters))


def _row(stored: StoredLetter) -> tuple[str, ...]:
    if stored.letter is None:
        return (stored.name, stored.since, "-", stored.error, "-", "-")
    letter = stored.letter
    answer = f"{letter.code} {letter.answer}".strip() or "no answer in time"
    # The answer of a function may have several lines, which are joined.
    return (
        stored.name,
        stored.since,
        letter.function or "-",
        " ".join(answer.split())[:80],
        str(letter.event["type"]),
        letter.about or "-",
    )

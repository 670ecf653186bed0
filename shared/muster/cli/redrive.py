"""`muster redrive`: list dead letters, and send them to the broker again."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import BadInput, CommandError, echo_data, echo_table, output_option
from muster.operator.redrive import (
    NoBrokerError,
    StoredLetter,
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
        letters = list_letters(cluster.client, namespace)
        if not names and not (everything and letters):
            _print(letters, output)
            return
        by_name = {stored.name: stored for stored in letters}
        for name in names:
            if name not in by_name:
                raise BadInput(f"{name}: no such dead letter")
        chosen = letters if everything else [by_name[name] for name in names]
        try:
            send = to_url(url) if url else through_api_server(cluster.client, namespace)
        except NoBrokerError as error:
            raise CommandError(str(error)) from None
        failures = 0
        for stored in chosen:
            failure = redrive(cluster.client, namespace, stored, send)
            failures += bool(failure)
            click.echo(f"{stored.name}: {f'kept: {failure}' if failure else 'sent again'}")
    if failures:
        raise SystemExit(1)


def _print(letters: Sequence[StoredLetter], output: str) -> None:
    rows = [_row(stored) for stored in letters]
    if output != "text":
        echo_data([dict(zip(map(str.lower, HEADERS), row, strict=True)) for row in rows], output)
    elif rows:
        echo_table(HEADERS, rows)
    else:
        click.echo("no dead letters")


def _row(stored: StoredLetter) -> tuple[str, ...]:
    letter = stored.letter
    if letter is None:
        return stored.name, stored.since, "-", stored.error, "-", "-"
    answer = " ".join(f"{letter.code} {letter.answer}".split())[:80] or "no answer in time"
    about = letter.about or "-"
    return stored.name, stored.since, letter.function or "-", answer, letter.event["type"], about

"""`muster status`: list what waits or runs without a gang, since when, and why."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from muster.cli.arguments import BadInput
from muster.cli.cluster import KubeconfigOptions, brief, cluster_options, connected
from muster.cli.output import echo_items, echo_table, output_option
from muster.cluster.errors import ClusterError
from muster.cluster.versioned import Versioned
from muster.objects.meta import read_time
from muster.operator.status import ClusterStatus, Item, State, read_status

HEADS = {State.WAITING: "WAITS", State.NO_GANG: "RUNS WITHOUT GANG"}
"""The heading of the objects of a state; each state has a table of its own."""

WATCH_SECONDS = 2.0
"""The time between two looks of --watch."""


@click.command("status")
@click.option("-n", "--namespace", default="", help="Only this namespace; default: the context's.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Print it again whenever it changes, until Ctrl-C.")
@output_option("text", "json", "yaml")
@cluster_options
def command(
    namespace: str, output: str, options: KubeconfigOptions, *, everywhere: bool, watch: bool
) -> None:
    """List what waits for a PodGroup or for room, and what runs without a gang, since when, and why.

    Looks at the conditions that Muster writes on TrainJobs, JobSets and Jobs, at fallback PodGroups, and at
    pods that are held by Muster's gate or belong to a PodGroup that does not exist. Nothing is written.

    Exits with 1 if a kind could not be listed, so that nothing is known of it.
    """
    if everywhere and namespace:
        raise BadInput("-A: cannot be used with -n")
    with connected(options, "status") as cluster:
        place = "" if everywhere else namespace or cluster.namespace
        if place:
            cluster.require_namespace(place)

        def look() -> ClusterStatus:
            return read_status(Versioned(cluster.client), place)

        status = look()
        _show(status, place, output)
        if watch:
            _watch(status, look, lambda changed: _show(changed, place, output))
    if status.not_read:
        raise SystemExit(1)


def _watch(
    shown: ClusterStatus, look: Callable[[], ClusterStatus], show: Callable[[ClusterStatus], None]
) -> None:
    """Show each status that differs from the one before; wait where the API server does not answer."""
    while True:
        time.sleep(WATCH_SECONDS)
        try:
            status = look()
        except ClusterError as error:
            click.echo(f"muster: {type(error).__name__}: {brief(error)}", err=True)
            continue
        if status != shown or sys.stdout.isatty():
            click.clear()
            show(status)
        shown = status


def _show(status: ClusterStatus, namespace: str, output: str) -> None:
    if output == "text":
        tables = [[item for item in status.items if item.state is state] for state in State]
        for number, items in enumerate(filter(None, tables)):
            if number:
                click.echo()
            _print_table(items)
        if not (status.items or status.not_read):
            place = f"in namespace {namespace}; -A looks at all" if namespace else "in any namespace"
            click.echo(f"nothing is waiting {place}")
    else:
        echo_items(map(asdict, status.items), output)
    for kind, message in status.not_read.items():
        click.echo(f"muster: {kind} could not be read: {message}", err=True)


def _print_table(items: Sequence[Item]) -> None:
    """Print the items of a state."""
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    rows = [(item.namespace, item.what, _age(item.since, now), item.reason, item.message) for item in items]
    echo_table(("NAMESPACE", HEADS[items[0].state], "FOR", "REASON", "MESSAGE"), rows)


def _age(since: str, now: datetime) -> str:
    """Return the time since `since` in its two largest units, `3d4h` or `12m`; "-" if unknown."""
    began = read_time(since)
    if began is None:
        return "-"
    seconds = max(now - began, timedelta()) // timedelta(seconds=1)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"

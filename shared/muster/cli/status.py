"""`muster status`: list what waits or runs without a gang, since when, and why."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from muster.cli.arguments import BadInput
from muster.cli.cluster import Connection, KubeconfigOptions, brief, cluster_options, connected
from muster.cli.output import echo, echo_items, echo_line, echo_lines, output_option, step_shown
from muster.cli.tables import fitted, terminal_columns
from muster.cluster.errors import ClusterError
from muster.cluster.versioned import Versioned
from muster.objects.meta import read_time
from muster.operator.status import ClusterStatus, Item, State, read_status

HEADS = {State.WAITING: "WAITS", State.NO_GANG: "RUNS WITHOUT GANG"}
"""The heading of the objects of a state; each state has a table of its own."""

WATCH_SECONDS = 2.0
"""The shortest time between two looks of --watch."""
_SHARE_OF_TIME = 5
"""A look of --watch may take one part in so many of the time: in a large cluster it looks less often."""
_LONGEST_PAUSE_SECONDS = 30.0
"""The longest time between two looks of --watch, in which nothing is shown."""


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
        look = _looker(cluster, place)
        if watch:
            _watch(look, lambda status: _show(status, place, output))
            return
        status = look()
        _show(status, place, output)
    if status.not_read:
        raise SystemExit(1)


def _looker(cluster: Connection, namespace: str) -> Callable[[], ClusterStatus]:
    def look() -> ClusterStatus:
        with step_shown("reading") as reading:
            return read_status(Versioned(cluster.client), namespace, reading=reading)

    return look


def _watch(look: Callable[[], ClusterStatus], show: Callable[[ClusterStatus], None]) -> None:
    """Show each status that differs from the one before; wait where the API server does not answer.

    Raises:
        ClusterError: the first look failed.
    """
    shown: ClusterStatus | None = None
    while True:
        began = time.monotonic()
        took = 0.0
        try:
            status = look()
            took = time.monotonic() - began
        except ClusterError as error:
            if shown is None:
                raise
            echo_line(f"muster: {type(error).__name__}: {brief(error)}", err=True)
        else:
            if status != shown or sys.stdout.isatty():
                if sys.stdout.isatty():
                    click.clear()
                show(status)
            shown = status
        time.sleep(min(max(WATCH_SECONDS, (_SHARE_OF_TIME - 1) * took), _LONGEST_PAUSE_SECONDS))


def _show(status: ClusterStatus, namespace: str, output: str) -> None:
    if output == "text":
        tables = filter(None, ([item for item in status.items if item.state is state] for state in State))
        for number, items in enumerate(tables):
            if number:
                echo("")
            _print_table(items)
        if not (status.items or status.not_read):
            place = f"in namespace {namespace}; -A looks at all" if namespace else "in any namespace"
            echo(f"nothing is waiting {place}")
    else:
        echo_items([{**asdict(item), "state": str(item.state)} for item in status.items], output)
    if status.left_out:
        echo_line(f"muster: left out, the latest of namespaces with many: {status.left_out}", err=True)
    for kind, message in status.not_read.items():
        echo_line(f"muster: {kind} could not be read: {message}", err=True)


def _print_table(items: Sequence[Item]) -> None:
    """Print the items of a state."""
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    rows = [
        (item.namespace, item.what, _age(item.since, now), item.reason, " ".join(item.message.split()))
        for item in items
    ]
    headers = ("NAMESPACE", HEADS[items[0].state], "FOR", "REASON", "MESSAGE")
    echo_lines(fitted(headers, rows, terminal_columns()), len(rows))


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

"""`muster get`: list the gangs of a cluster, once or live."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import click
from rich.live import Live
from rich.table import Table

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected, namespace_options
from muster.cli.common import BadInput, CommandError, age, echo_data, echo_table, interrupt_by_signals
from muster.cli.gang_reader import GangReader
from muster.local import display
from muster.replay.gangs import GangOverview, gangs_of
from muster.replay.snapshots import Objects

_TICK_SECONDS = 0.5
_COLUMNS = ("NAMESPACE", "OWNER", "GROUPS", "PODS", "NODES", "AGE", "REASON")
_WIDE = ("ON", "MESSAGE")


EXAMPLES = """\b
Examples:
  muster get -A                         the gangs of all namespaces
  muster get -w                         those of the context's namespace, live
  muster get job/llama -o yaml          all that is known of one
  kubectl delete $(muster get -o name)  delete their jobs
"""


@click.command("get", epilog=EXAMPLES)
@click.argument("names", metavar="[NAME | KIND/NAME]...", nargs=-1)
@namespace_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "wide", "json", "yaml", "name"]),
    default="text",
    help="Format; wide adds the names of the nodes and the message.",
)
@click.option("-w", "--watch", is_flag=True, help="Stay, and show what changes, until Ctrl-C.")
@cluster_options
def command(
    names: tuple[str, ...],
    namespace: str,
    output: str,
    options: KubeconfigOptions,
    *,
    everywhere: bool,
    watch: bool,
) -> None:
    """List gangs: each owner's groups placed/wanted, pods bound/needed, nodes, age, and why it waits.

    A gang is a TrainJob, JobSet or Job, or anything else that owns PodGroups, whose pods are scheduled
    together. Only the API server is read: nothing is written, and no function runs.

    Exits with 1 if a kind could not be read, or if a NAME is no gang.
    """
    if watch and output not in {"text", "wide"}:
        raise BadInput(f"-w: cannot be used with -o {output}")
    with connected(options, "get") as cluster:
        place = cluster.place(namespace, everywhere=everywhere)
        reader = GangReader(cluster.client, place)

        def chosen(objects: Objects) -> list[GangOverview]:
            wanted = {name.lower() for name in names}
            return [one for one in gangs_of(objects) if not names or wanted & {one.what, one.owner.name}]

        if watch:
            interrupt_by_signals()
            with reader.following() as recorder:
                _follow(lambda: _table(chosen(recorder.objects()), place, wide=output == "wide"))
            return
        gangs = chosen(reader.objects())
    _print(gangs, output, place)
    for kind, message in reader.not_read.items():
        click.echo(f"muster: {kind} could not be read: {message}", err=True)
    found = {text for gang in gangs for text in (gang.what, gang.owner.name)}
    if missing := [name for name in names if name.lower() not in found]:
        raise CommandError(f"no gang {', '.join(missing)} {_in(place)}")
    if not gangs:
        click.echo(f"no gangs {_in(place)}", err=True)
    if reader.not_read:
        raise SystemExit(1)


def _in(place: str) -> str:
    return f"in namespace {place}; -A looks at all" if place else "in any namespace"


def _print(gangs: Sequence[GangOverview], output: str, place: str) -> None:
    if output in {"json", "yaml"}:
        echo_data([gang.as_data() for gang in gangs], output)
    elif output == "name":
        click.echo("".join(f"{_kubectl_name(gang)}\n" for gang in gangs), nl=False)
    elif gangs:
        columns, *rows = _table(gangs, place, wide=output == "wide")
        echo_table(columns, rows)


def _table(gangs: Sequence[GangOverview], place: str, *, wide: bool) -> list[tuple[str, ...]]:
    """Return the column heads and a row for each gang; without the namespace if all are in one."""
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    rows: list[tuple[str, ...]] = [(*_COLUMNS, *_WIDE)]
    for gang in gangs:
        data = gang.as_data()
        groups, pods, nodes = data["groups"], data["pods"], data["nodes"]
        counts = (
            f"{groups['placed']}/{groups['wanted']}",
            f"{pods['bound']}/{pods['needed']}",
            str(len(nodes)),
        )
        told = gang.told.reason or str(gang.told.state)
        names = ",".join(f"{name}*{count}" if count > 1 else name for name, count in nodes.items())
        told_of = age(gang.created, now), told, names or "-", gang.told.message or "-"
        rows.append((gang.owner.namespace, gang.what, *counts, *told_of))
    columns = slice(1 if place else 0, None if wide else len(_COLUMNS))
    return [row[columns] for row in rows]


def _follow(table: Callable[[], list[tuple[str, ...]]]) -> None:
    """Show a table until Ctrl-C: in place on a terminal, else each row when it changes but for its age."""
    console = display.console()
    known: set[tuple[str, ...]] = set()
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            columns, *rows = table()
            if console.is_terminal:
                grid = Table(*columns, box=None, pad_edge=False, header_style="bold")
                for row in rows:
                    grid.add_row(*row)
                live.update(grid, refresh=True)
            timeless = {(*row[:at], *row[at + 1 :]): row for at in (columns.index("AGE"),) for row in rows}
            if not console.is_terminal and (changed := timeless.keys() - known):
                echo_table(columns, [row for key, row in timeless.items() if key in changed])
            known = set(timeless)
            time.sleep(_TICK_SECONDS)


def _kubectl_name(gang: GangOverview) -> str:
    """Return the name of an owner as `kubectl get -o name` prints it: `job.batch/llama`."""
    group = gang.owner.api_version.rpartition("/")[0]
    return f"{gang.owner.kind.lower()}{'.' if group else ''}{group}/{gang.owner.name}"

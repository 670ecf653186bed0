"""`muster replay`: recorded events through the functions, against the embedded API server."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from muster.cli.bad_input import BadInput, told_in_one_line
from muster.cli.replay_to import is_over_http, options_to, send_to
from muster.replay import snapshots as worlds
from muster.replay import summary as outline
from muster.replay.activity import Activity
from muster.replay.arranging import Arrangement
from muster.replay.recorded_requests import read_events, time_of
from muster.replay.replay import (
    Delivery,
    End,
    NeverQuietError,
    Order,
    event_of,
    replay,
    without_groups,
)
from muster.replay.snapshots import World
from muster.simulator.broker import CloudEvent

_EPOCH = datetime.fromtimestamp(0, UTC)
_A_WHILE = 50
"""Deliveries from which on a replay may take seconds."""


@click.command("replay")
@click.argument("event_files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--objects",
    "object_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The cluster: YAML or JSON files of objects and Lists; an empty cluster where none is given.",
)
@click.option(
    "--moment",
    "moments",
    multiple=True,
    help="Which moment of a recording the cluster is at: the first with a pod, where none is named. Of "
    "several, the stream is replayed at each in turn, and what the functions made is kept in between.",
)
@click.option("--drop-groups", is_flag=True, help="Leave out what Muster had made by then.")
@click.option("--twice", is_flag=True, help="Deliver the whole stream a second time.")
@click.option("--reverse", is_flag=True, help="Deliver the last event first.")
@click.option("--without", type=int, multiple=True, metavar="N", help="Leave out the N-th event, from 1.")
@click.option(
    "--duplicates",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Deliver each event N more times.",
)
@click.option(
    "--shuffle", type=int, metavar="SEED", help="Deliver in an order by chance, the same for a SEED."
)
@click.option("--sweep", is_flag=True, help="Send one sweep after the events.")
@click.option("--output", type=click.Choice(["text", "yaml"]), default="text", show_default=True)
@options_to
def command(  # noqa: PLR0913 - one argument for each option
    event_files: tuple[Path, ...],
    object_files: tuple[Path, ...],
    moments: tuple[str, ...],
    without: tuple[int, ...],
    duplicates: int,
    shuffle: int | None,
    output: str,
    *,
    drop_groups: bool,
    twice: bool,
    reverse: bool,
    sweep: bool,
    **over_http: Any,
) -> None:
    """Deliver the events in FILE... to the functions and print what they made of the cluster.

    A FILE holds structured CloudEvents as JSON Lines, as a JSON batch or one by one, or captured requests
    {headers, body}; `.gz` is unpacked. The cluster is an embedded API server that holds the objects as they
    are. No controller runs: only the functions change anything, and what they write becomes events in turn.
    Events go to every function whose Trigger in eventing/ lets them through, one after the other, so the
    same input always ends the same.

    With --to the events go over HTTP to one function or broker that runs, and what it answers is printed.

    Exits with 1 when an event could not be delivered or was refused, with 2 when a file cannot be used.
    """
    arrangement = Arrangement(without, reverse, duplicates, twice, shuffle)
    with told_in_one_line():
        captures = [capture for path in event_files for capture in read_events(path)]
        for capture in captures:
            _warn(capture.place, event_of(capture))
        stream = arrangement.of(captures)
        if is_over_http(over_http):
            _refuse_with_to(objects=object_files, moment=moments, drop_groups=drop_groups, sweep=sweep)
            send_to(stream, **over_http)
            return
        chosen = _worlds(object_files, moments, drop_groups=drop_groups)
        now = max((time_of(capture, _EPOCH) for capture in captures), default=_EPOCH)
        with _progress(len(stream) * len(chosen)) as told:
            end = _replayed(Order(tuple(stream), sweep), chosen, now, told)
    told_of = outline.outline(end.objects)
    if output == "yaml":
        click.echo(
            yaml.safe_dump({**told_of, "functions": _counts(end)}, sort_keys=False, width=110), nl=False
        )
    else:
        _print(end, told_of, len(stream) * len(chosen))
    _complain(end)


def _warn(place: str, event: CloudEvent) -> None:
    """Say so where an event of ApiServerSource lacks what the triggers of eventing/ choose by."""
    if event["type"].startswith("dev.knative.apiserver.") and not (event["kind"] and event["apiversion"]):
        click.echo(
            f"muster: {place}: without the extensions apiversion and kind no trigger lets it through",
            err=True,
        )


def _replayed(order: Order, chosen: Sequence[World], now: datetime, told: Callable[[Delivery], None]) -> End:
    try:
        return replay(order, chosen, now, told=told)
    except NeverQuietError as error:
        raise click.ClickException(str(error)) from None


def _worlds(paths: Sequence[Path], moments: Sequence[str], *, drop_groups: bool) -> list[World]:
    there = worlds.read_worlds(paths)
    names = moments or ("",)
    chosen = [worlds.choose(there, name, worlds.first_with_pods) for name in names]
    return [without_groups(world) for world in chosen] if drop_groups else chosen


def _refuse_with_to(**options: object) -> None:
    """Refuse what is about the embedded API server.

    Raises:
        BadInput: such an option was given.
    """
    for name, value in options.items():
        if value:
            raise BadInput(
                f"--{name.replace('_', '-')}: --to sends to what runs already, with its own cluster"
            )


@contextmanager
def _progress(length: int) -> Iterator[Callable[[Delivery], None]]:
    """A bar on standard error for long replays that somebody watches."""
    hidden = length < _A_WHILE or not sys.stderr.isatty()
    with click.progressbar(length=length, label="events", file=sys.stderr, hidden=hidden) as bar:
        yield lambda _delivery: bar.update(1)


def _counts(end: End) -> dict[str, dict[str, int]]:
    """Of each function: events that reached it, and how often each reason was given."""
    counts: dict[str, Counter[str]] = {}
    for one in end.activities:
        counts.setdefault(one.step, Counter())[one.reason] += 1
    return {step: dict(sorted(reasons.items())) for step, reasons in sorted(counts.items())}


def _print(end: End, told_of: outline.Outline, delivered: int) -> None:
    acted = [one for one in end.activities if one.acted]
    click.echo(
        f"{delivered} events, {len(end.activities)} deliveries to functions, {len(acted)} of them acted:"
    )
    for one in acted:
        click.echo(f"  {_line(one)}")
    click.echo("")
    for line in outline.lines(told_of):
        click.echo(line)


def _line(one: Activity) -> str:
    about = f"{one.about} {one.happened}" if one.about else one.happened
    writes = f"{one.actions} write{'' if one.actions == 1 else 's'}"
    return f"{one.step:<18} {about}: {one.reason}, {writes}"


def _complain(end: End) -> None:
    for event in end.dead_letters:
        click.echo(
            f"muster: event {event['id']} ({event['type']} {event['subject']}) could not be delivered: "
            f"HTTP {event['knativeerrorcode']}",
            err=True,
        )
    if end.dead_letters:
        raise SystemExit(1)

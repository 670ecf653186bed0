"""`muster replay`: replay recorded events through the functions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from muster.cli.common import CommandError, echo_data, errors_as_bad_input, output_option
from muster.cli.overlays import overlay_option
from muster.cli.page import recorded_page
from muster.objects.text import counted
from muster.replay.files import read_events, time_of
from muster.replay.gangs import gangs_of
from muster.replay.replay import NeverQuietError, ReplayResult, event_of, is_musters_group, replay
from muster.replay.snapshots import choose_for, moments_of, objects_of_events, read_snapshots
from muster.replay.timeline import recorded


@click.command("replay")
@click.argument("event_files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--objects",
    "object_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="YAML or JSON files of the cluster's objects and Lists; default: an empty cluster.",
)
@click.option(
    "--moment",
    default="",
    help="Moment of a recording to load the cluster from; default: the first with the jobs of the events and "
    "a pod.",
)
@click.option("--drop-groups", is_flag=True, help="Leave out the groups that Muster had created by then.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with the recording in it to this file: what `muster view` shows, for a post-mortem.",
)
@overlay_option("Manifest or kustomize folder with triggers, yours among them; default: Muster's own.")
@output_option
def command(
    event_files: tuple[Path, ...],
    object_files: tuple[Path, ...],
    moment: str,
    output: str,
    overlay: Path,
    page: Path | None,
    *,
    drop_groups: bool,
) -> None:
    """Deliver the events in FILE... to the functions and print the resulting gangs, as `muster get -o yaml`.

    A FILE holds structured CloudEvents as JSON Lines, as a JSON batch or one by one; `.gz` is
    unpacked. The cluster is an embedded API server that holds the objects as they
    are. No controller runs: only the functions change anything, and what they write becomes events in turn.
    Events go to every function whose Trigger in eventing/ lets them through, one after the other, so the
    same input always ends the same.

    Exits with 1 if an event could not be delivered, with 2 if a file cannot be used.
    """
    with errors_as_bad_input():
        requests = [request for path in event_files for request in read_events(path)]
        for request in requests:
            event_of(request)  # the file is refused before any event is delivered
        snapshots = read_snapshots(object_files)
        if page is not None:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(recorded_page(recorded(requests, snapshots), event_files[0].name))
        chosen = choose_for(objects_of_events(requests), snapshots, moment)
        objects = chosen.objects
        if drop_groups:
            objects = [body for body in objects if not is_musters_group(body)]
        now = max(map(time_of, requests))
        try:
            result = replay(requests, objects, now, overlay=overlay)
        except NeverQuietError as error:
            raise CommandError(str(error)) from None
    summary = {"gangs": [gang.as_data() for gang in gangs_of(result.objects)]}
    if output == "text":
        if chosen.name:
            click.echo(f"from the moment {chosen.name!r}, of {moments_of(snapshots)}")
        _print(result, len(requests))
        echo_data(summary, "yaml")
    else:
        echo_data({**summary, "functions": _counts(result)}, output)
    for event in result.dead_letters:
        named = f"{event['id']} ({event['type']} {event['subject']})"
        code = event["knativeerrorcode"]
        click.echo(f"muster: event {named} could not be delivered: HTTP {code}", err=True)
    if result.dead_letters:
        raise SystemExit(1)


def _counts(result: ReplayResult) -> dict[str, dict[str, int]]:
    """Return the number of activities by function and reason."""
    counts: dict[str, Counter[str]] = {}
    for activity in result.activities:
        counts.setdefault(activity.step, Counter())[activity.reason] += 1
    return {step: dict(sorted(reasons.items())) for step, reasons in sorted(counts.items())}


def _print(result: ReplayResult, events: int) -> None:
    acted = [activity for activity in result.activities if activity.acted]
    deliveries = counted(len(result.activities), "delivery", "deliveries")
    click.echo(f"{counted(events, 'event')}, {deliveries} to functions, {len(acted)} with a plan:")
    for activity in acted:
        event = f"{activity.about} {activity.trigger}".strip()
        click.echo(f"  {activity.step:<18} {event}: {activity.reason}, writes: {activity.actions}")
    click.echo()

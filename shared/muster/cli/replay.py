"""`muster replay`: replay recorded events through the functions, or send them to a URL."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from muster.cli.common import BadInput, CommandError, echo_data, errors_as_bad_input, output_option
from muster.cli.overlays import overlay_option
from muster.replay.recorded_requests import RecordedRequest, read_events, time_of
from muster.replay.replay import NeverQuietError, ReplayResult, event_of, replay, without_groups
from muster.replay.snapshots import (
    Objects,
    choose,
    first_with,
    missing_objects,
    objects_of_events,
    read_snapshots,
)
from muster.replay.summary import Summary, as_lines, summarize
from muster.simulator.broker import HttpTarget, NoAnswerError
from muster.simulator.broker.delivery import is_success

ANSWER_SECONDS = 10.0
"""How long to wait for an answer; the triggers of eventing/ have the same timeout (PT10S)."""

_EPOCH = datetime.fromtimestamp(0, UTC)


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
    "--duplicates",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Deliver each event N more times.",
)
@click.option(
    "--shuffle", type=int, metavar="SEED", help="Deliver in a random order, the same for each SEED."
)
@click.option("--sweep", is_flag=True, help="Send one sweep after the events.")
@overlay_option("Manifest or kustomize folder with triggers, yours among them; default: Muster's own.")
@output_option
@click.option("--to", "url", default="", metavar="URL", help="Send to this function or broker, by HTTP.")
def command(  # noqa: PLR0913 - one argument for each option
    event_files: tuple[Path, ...],
    object_files: tuple[Path, ...],
    moment: str,
    duplicates: int,
    shuffle: int | None,
    output: str,
    overlay: Path,
    url: str,
    *,
    drop_groups: bool,
    sweep: bool,
) -> None:
    """Deliver the events in FILE... to the functions and print the resulting groups.

    A FILE holds structured CloudEvents as JSON Lines, as a JSON batch or one by one; `.gz` is
    unpacked. The cluster is an embedded API server that holds the objects as they
    are. No controller runs: only the functions change anything, and what they write becomes events in turn.
    Events go to every function whose Trigger in eventing/ lets them through, one after the other, so the
    same input always ends the same.

    With --to the events go over HTTP to one function or broker that runs, and what it answers is printed.

    Exits with 1 if an event could not be delivered or was refused, with 2 if a file cannot be used.
    """
    with errors_as_bad_input():
        requests = [request for path in event_files for request in read_events(path)]
        for request in requests:
            event_of(request)  # the file is refused before any event is delivered
        stream = [request for request in requests for _ in range(1 + duplicates)]
        if shuffle is not None:
            random.Random(shuffle).shuffle(stream)  # noqa: S311 - a reproducible order
        if url:
            _send(stream, url)
            return
        objects = _objects(object_files, moment, requests)
        if drop_groups:
            objects = without_groups(objects)
        now = max(time_of(request, _EPOCH) for request in requests)
        try:
            result = replay(stream, objects, now, sweep=sweep, overlay=overlay)
        except NeverQuietError as error:
            raise CommandError(str(error)) from None
    summary = summarize(result.objects)
    if output == "text":
        _print(result, summary, len(stream))
    else:
        echo_data({**summary, "functions": _counts(result)}, output)
    for event in result.dead_letters:
        named = f"{event['id']} ({event['type']} {event['subject']})"
        code = event["knativeerrorcode"]
        click.echo(f"muster: event {named} could not be delivered: HTTP {code}", err=True)
    if result.dead_letters:
        raise SystemExit(1)


def _objects(paths: Sequence[Path], moment: str, requests: Sequence[RecordedRequest]) -> Objects:
    """Return the moment to replay at; say which of the owners that the events name are not in it."""
    snapshots = read_snapshots(paths)
    owners = objects_of_events(requests)
    chosen = choose(snapshots, moment, lambda known: first_with(owners, known))
    for line in missing_objects(owners, chosen, snapshots) if paths else ():
        click.echo(f"muster: {line}", err=True)
    return chosen.objects


def _counts(result: ReplayResult) -> dict[str, dict[str, int]]:
    """Return the number of activities by function and reason."""
    counts: dict[str, Counter[str]] = {}
    for activity in result.activities:
        counts.setdefault(activity.step, Counter())[activity.reason] += 1
    return {step: dict(sorted(reasons.items())) for step, reasons in sorted(counts.items())}


def _print(result: ReplayResult, summary: Summary, events: int) -> None:
    acted = [activity for activity in result.activities if activity.acted]
    click.echo(
        f"{events} events, {len(result.activities)} deliveries to functions, {len(acted)} with a plan:"
    )
    for activity in acted:
        event = f"{activity.about} {activity.trigger}".strip()
        writes = f"{activity.actions} write{'' if activity.actions == 1 else 's'}"
        click.echo(f"  {activity.step:<18} {event}: {activity.reason}, {writes}")
    click.echo()
    for line in as_lines(summary):
        click.echo(line)


def _send(stream: Sequence[RecordedRequest], url: str) -> None:
    """Send events to a URL, each after the answer to the one before, and print the answers.

    Raises:
        BadInput: the URL is invalid.
        SystemExit: with 1, an event was refused.
    """
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"--to: {url!r} is not a URL of a function or broker")
    target, refused = HttpTarget(url), 0
    for number, request in enumerate(stream, start=1):
        event = event_of(request)
        try:
            answer = target(event.headers(), event.data, ANSWER_SECONDS)
            accepted = is_success(answer.status)
            said = (
                str(answer.status) if accepted else f"{answer.status} {answer.body.decode(errors='replace')}"
            )
        except NoAnswerError as error:
            accepted, said = False, f"no answer: {error}"
        refused += not accepted
        about = " ".join(filter(None, (event["type"], event["kind"], event["namespace"], event["name"])))
        click.echo(f"{number:>4} {about}: {' '.join(said.split())}")
    click.echo(f"{len(stream)} events sent: {len(stream) - refused} accepted, {refused} refused")
    if refused:
        raise SystemExit(1)

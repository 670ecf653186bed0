"""`muster replay`: replay recorded events through the functions, or send them to a URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import click

from muster.cli.arguments import BadInput, errors_as_bad_input, interrupt_by_signals
from muster.cli.output import CommandError, echo_data, output_option
from muster.cli.overlays import overlay_option
from muster.replay.activity import Activity
from muster.replay.recorded_requests import RecordedRequest, read_events, time_of
from muster.replay.recording.events import describe
from muster.replay.replay import (
    Arrangement,
    NeverQuietError,
    ReplayInput,
    ReplayResult,
    event_of,
    replay,
    without_groups,
)
from muster.replay.resending import ContentMode, SentEvent, outgoing, resend
from muster.replay.snapshots import (
    RecordedObjects,
    choose,
    first_with,
    missing_objects,
    objects_of_events,
    read_snapshots,
)
from muster.replay.summary import Summary, as_lines, summarize
from muster.simulator.broker import CloudEvent, HttpTarget

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
    "moments",
    multiple=True,
    help="Moment of a recording to load the cluster from; default: the first with the jobs of the events and "
    "a pod. With several, the stream is replayed at each in turn, and what the functions created is kept.",
)
@click.option("--drop-groups", is_flag=True, help="Leave out the groups that Muster had created by then.")
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
    "--shuffle", type=int, metavar="SEED", help="Deliver in a random order, the same for each SEED."
)
@click.option("--sweep", is_flag=True, help="Send one sweep after the events.")
@overlay_option("Manifest or kustomize folder with triggers, yours among them; default: Muster's own.")
@output_option("text", "json", "yaml")
@click.option(
    "--to", "url", metavar="URL", help="Send to this function or broker, one event after the other."
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0),
    metavar="N",
    help="With --to: 1 keeps the recorded times, 2 is twice as fast; default: 0, without waiting.",
)
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in ContentMode]),
    help="With --to: content mode of the requests; default: binary, like ApiServerSource.",
)
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="With --to: send at most N events.")
def command(  # noqa: PLR0913 - one argument for each option
    event_files: tuple[Path, ...],
    object_files: tuple[Path, ...],
    moments: tuple[str, ...],
    without: tuple[int, ...],
    duplicates: int,
    shuffle: int | None,
    output: str,
    overlay: Path,
    *,
    drop_groups: bool,
    twice: bool,
    reverse: bool,
    sweep: bool,
    url: str | None,
    speed: float | None,
    mode: str | None,
    count: int | None,
) -> None:
    """Deliver the events in FILE... to the functions and print the resulting groups.

    A FILE holds structured CloudEvents as JSON Lines, as a JSON batch or one by one, or captured requests
    {headers, body}; `.gz` is unpacked. The cluster is an embedded API server that holds the objects as they
    are. No controller runs: only the functions change anything, and what they write becomes events in turn.
    Events go to every function whose Trigger in eventing/ lets them through, one after the other, so the
    same input always ends the same.

    With --to the events go over HTTP to one function or broker that runs, and what it answers is printed.

    Exits with 1 if an event could not be delivered or was refused, with 2 if a file cannot be used.
    """
    arrangement = Arrangement(without, reverse, duplicates, twice, shuffle)
    with errors_as_bad_input():
        requests = [request for path in event_files for request in read_events(path)]
        for request in requests:
            _warn(request.location, event_of(request))
        stream = arrangement.apply(requests)
        if url is not None:
            _refuse_with_to(objects=object_files, moment=moments, drop_groups=drop_groups, sweep=sweep)
            _send(stream[:count], len(stream), url, ContentMode(mode or "binary"), speed or 0.0)
            return
        if speed or mode or count:
            raise BadInput("--speed, --mode and --count need --to")
        snapshots = _snapshots(object_files, moments, requests)
        if drop_groups:
            snapshots = [without_groups(snapshot) for snapshot in snapshots]
        now = max((time_of(request, _EPOCH) for request in requests), default=_EPOCH)
        try:
            result = replay(ReplayInput(tuple(stream), sweep), snapshots, now, overlay=overlay)
        except NeverQuietError as error:
            raise CommandError(str(error)) from None
    summary = summarize(result.objects)
    if output == "text":
        _print(result, summary, len(stream) * len(snapshots))
    else:
        echo_data({**summary, "functions": _counts(result)}, output)
    _report_dead_letters(result)


def _warn(location: str, event: CloudEvent) -> None:
    """Print a warning if an event of ApiServerSource lacks the attributes that triggers filter by."""
    if event["type"].startswith("dev.knative.apiserver.") and not (event["kind"] and event["apiversion"]):
        click.echo(
            f"muster: {location}: no trigger matches without the extensions apiversion and kind",
            err=True,
        )


def _snapshots(
    paths: Sequence[Path], checkpoints: Sequence[str], requests: Sequence[RecordedRequest]
) -> list[RecordedObjects]:
    """Return the moments to replay at; say which of the owners that the events name are in none of them."""
    snapshots = read_snapshots(paths)
    owners = objects_of_events(requests)
    chosen = [
        choose(snapshots, name, lambda known: first_with(owners, known)) for name in checkpoints or ("",)
    ]
    for line in missing_objects(owners, chosen[-1], snapshots) if paths else ():
        click.echo(f"muster: {line}", err=True)
    return chosen


def _refuse_with_to(**options: object) -> None:
    """Refuse the options of the embedded API server.

    Raises:
        BadInput: one of them was given.
    """
    for name, value in options.items():
        if value:
            raise BadInput(f"--{name.replace('_', '-')}: --to uses the cluster of the running functions")


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
        click.echo(f"  {_activity_line(activity)}")
    click.echo()
    for line in as_lines(summary):
        click.echo(line)


def _activity_line(activity: Activity) -> str:
    event = f"{activity.about} {activity.trigger}" if activity.about else activity.trigger
    writes = f"{activity.actions} write{'' if activity.actions == 1 else 's'}"
    return f"{activity.step:<18} {event}: {activity.reason}, {writes}"


def _report_dead_letters(result: ReplayResult) -> None:
    """Print each event that could not be delivered; exit with 1 if there was any."""
    for event in result.dead_letters:
        named, kind, about = event["id"], event["type"], event["subject"]
        click.echo(
            f"muster: event {named} ({kind} {about}) could not be delivered: "
            f"HTTP {event['knativeerrorcode']}",
            err=True,
        )
    if result.dead_letters:
        raise SystemExit(1)


def _send(stream: Sequence[RecordedRequest], total: int, url: str, mode: ContentMode, speed: float) -> None:
    """Send events to a URL, and print the answer to each and the number of each kind of answer.

    Raises:
        BadInput: the URL is invalid.
        SystemExit: with 1, an event was refused.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadInput(f"--to: {url!r} is not a URL of a function or broker")
    for request in stream:
        outgoing(request, mode)
    answers: list[SentEvent] = []
    began = monotonic()
    interrupt_by_signals()
    target = HttpTarget(url)
    with suppress(KeyboardInterrupt):
        for sent in resend(stream, mode, target, speed):
            answers.append(sent)
            click.echo(f"{len(answers):>4} {_answer_line(sent)}")
    _print_answers(answers, total, monotonic() - began)
    if not all(sent.delivered for sent in answers):
        raise SystemExit(1)


def _answer_line(sent: SentEvent) -> str:
    parts = [str(sent.status or "no answer"), sent.reply, sent.reason]
    if sent.retry_after:
        parts.insert(1, f"Retry-After {sent.retry_after}")
    return f"{describe(sent.event)}: {' '.join(filter(None, parts))}"


def _print_answers(answers: Sequence[SentEvent], total: int, seconds: float) -> None:
    """Print how many events were sent, and how often each status and type of a reply came."""
    delivered = sum(sent.delivered for sent in answers)
    counts = f"{delivered} accepted, {len(answers) - delivered} refused"
    click.echo(f"{len(answers)} of {total} events sent in {seconds:.1f} s: {counts}")
    for status, times in sorted(Counter(sent.status for sent in answers).items()):
        click.echo(f"  {status or 'no answer'}: {times}")
    for reply, times in sorted(Counter(sent.reply for sent in answers if sent.reply).items()):
        click.echo(f"  {reply}: {times}")

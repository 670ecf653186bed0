"""`muster replay`: replay recorded events through the functions, or send them to a URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import click

from muster.cli.arguments import (
    BadInput,
    Duration,
    beyond_option,
    errors_as_bad_input,
    keep_to_this_machine,
    stop_signals,
)
from muster.cli.output import CommandError, echo, echo_line, echo_sections, output_option, step_shown
from muster.cli.overlays import overlay_option
from muster.objects.text import cut_to
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
from muster.replay.resending import ContentMode, Pace, SentEvent, outgoing, resend
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

MOST_DELIVERIES = 1_000_000
"""The most deliveries of one command; each takes a function a millisecond or more."""

_NAME_LENGTH = 256
"""The most characters of an attribute that names an event."""

_EPOCH = datetime.fromtimestamp(0, UTC)


class _Speed(click.ParamType[float]):
    """A number from 0, or `max`, which is 0."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            speed = 0.0 if value == "max" else float(value)
        except ValueError:
            speed = -1.0
        if not 0 <= speed < float("inf"):
            self.fail(f"{value!r} is neither a number from 0 nor max", param, ctx)
        return speed


_HTTP_OPTIONS = (
    click.option(
        "--to", "url", metavar="URL", help="Send to this function or broker, one event after the other."
    ),
    click.option(
        "--speed",
        type=_Speed(),
        metavar="N",
        help="With --to: 1 keeps the recorded times, 2 is twice as fast; default: max, without waiting.",
    ),
    click.option(
        "--mode",
        type=click.Choice([mode.value for mode in ContentMode]),
        help="With --to: content mode of the requests; default: binary, like ApiServerSource.",
    ),
    click.option(
        "--count", type=click.IntRange(min=1), metavar="N", help="With --to: send at most N events."
    ),
    click.option(
        "--for",
        "seconds",
        type=Duration(),
        metavar="TIME",
        help="With --to: stop sending after this time, such as 30s or 2m.",
    ),
    beyond_option("With --to: allow another machine, whose functions write into its cluster."),
)


def _http_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of `muster replay --to` to a command."""
    for option in reversed(_HTTP_OPTIONS):
        command = option(command)
    return command


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
@_http_options
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
    **http_options: Any,
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
        requests = _requests(event_files)
        with step_shown("reading") as show:
            for number, request in enumerate(requests, start=1):
                show(f"event {number} of {len(requests)}")
                _warn(request.location, event_of(request))
        deliveries = len(requests) * (1 + duplicates) * (1 + twice)
        if deliveries > MOST_DELIVERIES:
            raise BadInput(f"{deliveries} deliveries, of {MOST_DELIVERIES} at most: take fewer --duplicates")
        stream = arrangement.apply(requests)
        if _is_over_http(http_options):
            _refuse_with_to(objects=object_files, moment=moments, drop_groups=drop_groups, sweep=sweep)
            _send(stream, **http_options)
            return
        snapshots = _snapshots(object_files, moments, requests, drop_groups=drop_groups)
        now = max((time_of(request, _EPOCH) for request in requests), default=_EPOCH)
        with step_shown("replaying") as show:
            result = _replay(ReplayInput(tuple(stream), sweep), snapshots, now, overlay, show)
    summary = summarize(result.objects)
    if output == "text":
        _print(result, summary, len(stream) * len(snapshots))
    else:
        echo_sections({**summary, "functions": _counts(result)}, output)
    _report_dead_letters(result)


def _warn(location: str, event: CloudEvent) -> None:
    """Print a warning if an event of ApiServerSource lacks the attributes that triggers filter by."""
    if event["type"].startswith("dev.knative.apiserver.") and not (event["kind"] and event["apiversion"]):
        echo_line(
            f"muster: {location}: no trigger matches without the extensions apiversion and kind",
            err=True,
        )


def _replay(
    events: ReplayInput,
    snapshots: Sequence[RecordedObjects],
    now: datetime,
    overlay: Path,
    show: Callable[[str], None],
) -> ReplayResult:
    try:
        return replay(events, snapshots, now, progress=show, overlay=overlay)
    except NeverQuietError as error:
        raise CommandError(str(error)) from None


def _requests(paths: Sequence[Path]) -> list[RecordedRequest]:
    """Return the events of all files."""
    requests: list[RecordedRequest] = []
    with step_shown("reading events:") as show:
        for number, path in enumerate(paths, start=1):
            show(f"file {number}")
            requests += read_events(path)
    return requests


def _snapshots(
    paths: Sequence[Path],
    checkpoints: Sequence[str],
    requests: Sequence[RecordedRequest],
    *,
    drop_groups: bool,
) -> list[RecordedObjects]:
    """Return the moments to replay at; say which of the owners that the events name are in none of them."""
    with step_shown("reading objects:") as show:
        snapshots = read_snapshots(paths)
        show("those of the events")
        owners = objects_of_events(requests)
        chosen = [
            choose(snapshots, name, lambda known: first_with(owners, known)) for name in checkpoints or ("",)
        ]
    for line in missing_objects(owners, chosen[-1], snapshots) if paths else ():
        echo_line(f"muster: {line}", err=True)
    return [without_groups(snapshot) for snapshot in chosen] if drop_groups else chosen


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
    echo(f"{events} events, {len(result.activities)} deliveries to functions, {len(acted)} with a plan:")
    for activity in acted:
        echo_line(f"  {_activity_line(activity)}")
    echo("")
    for line in as_lines(summary):
        echo_line(line)


def _activity_line(activity: Activity) -> str:
    event = f"{activity.about} {activity.trigger}" if activity.about else activity.trigger
    writes = f"{activity.actions} write{'' if activity.actions == 1 else 's'}"
    return f"{activity.step:<18} {event}: {activity.reason}, {writes}"


def _report_dead_letters(result: ReplayResult) -> None:
    """Print each event that could not be delivered; exit with 1 if there was any."""
    for event in result.dead_letters:
        named, kind, about = (cut_to(event[name], _NAME_LENGTH) for name in ("id", "type", "subject"))
        echo_line(
            f"muster: event {named} ({kind} {about}) could not be delivered: "
            f"HTTP {event['knativeerrorcode']}",
            err=True,
        )
    if result.dead_letters:
        raise SystemExit(1)


def _is_over_http(options: Mapping[str, Any]) -> bool:
    """Whether --to was given.

    Raises:
        BadInput: it was not, but an option that needs it.
    """
    if options["url"] is None and any(options.values()):
        raise BadInput("--speed, --mode, --count, --for and --beyond-this-machine need --to")
    return options["url"] is not None


def _send(
    stream: Sequence[RecordedRequest],
    *,
    url: str,
    speed: float | None,
    mode: str | None,
    count: int | None,
    seconds: float | None,
    beyond: bool,
) -> None:
    """Send events to a URL, and print the answer to each and the number of each kind of answer.

    Raises:
        BadInput: the URL is invalid, or of another machine without --beyond-this-machine.
        SystemExit: with 1, an event was refused.
    """
    host = _host_of(url)
    if host is None:
        raise BadInput(f"--to: {url!r} is not a URL of a function or broker")
    keep_to_this_machine("--to", host, "functions write when they get an event", beyond=beyond)
    content_mode = ContentMode(mode or ContentMode.BINARY)
    with step_shown("checking events:") as show:
        for number, request in enumerate(stream[:count], start=1):
            show(f"event {number}")
            outgoing(request, content_mode)
    answers: list[tuple[int, str, bool]] = []
    began = monotonic()
    with stop_signals() as stop:
        target = HttpTarget(url)
        with step_shown("sending") as show:
            show("event 1")
            for event in resend(stream[:count], content_mode, target, Pace(speed or 0.0, seconds), stop):
                show("")
                answers.append((event.status, event.reply, event.delivered))
                echo_line(f"{len(answers):>4} {_answer_line(event)}")
                show(f"event {len(answers) + 1}")
    _print_answers(answers, len(stream), monotonic() - began)
    if not all(delivered for _, _, delivered in answers):
        raise SystemExit(1)


def _host_of(url: str) -> str | None:
    """Return the host of an HTTP URL; None if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return parts.hostname if parts.scheme in {"http", "https"} else None


def _answer_line(sent: SentEvent) -> str:
    parts = [str(sent.status or "no answer"), sent.reply, sent.reason]
    if sent.retry_after:
        parts.insert(1, f"Retry-After {sent.retry_after}")
    return f"{describe(sent.event)}: {' '.join(filter(None, parts))}"


def _print_answers(answers: Sequence[tuple[int, str, bool]], total: int, seconds: float) -> None:
    """Print how many events were sent, and how often each status and type of a reply came."""
    delivered = sum(delivered for _, _, delivered in answers)
    counts = f"{delivered} accepted, {len(answers) - delivered} refused"
    echo(f"{len(answers)} of {total} events sent in {seconds:.1f} s: {counts}")
    for status, times in sorted(Counter(status for status, _, _ in answers).items()):
        echo_line(f"  {status or 'no answer'}: {times}")
    for reply, times in sorted(Counter(reply for _, reply, _ in answers if reply).items()):
        echo_line(f"  {reply}: {times}")

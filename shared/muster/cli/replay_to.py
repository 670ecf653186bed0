"""`muster replay --to`: recorded events over HTTP, and what is answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import click

from muster.cli.bad_input import BadInput
from muster.cli.loopback import beyond_option, keep_to_this_machine
from muster.cli.stopping import told_to_stop
from muster.replay.recorded_requests import Capture
from muster.replay.recording import about
from muster.replay.resending import Answered, ContentMode, Pace, outgoing, resend
from muster.simulator.broker import HttpTarget


class _Speed(click.ParamType[float]):
    """A number, or `max`, which is 0."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            speed = 0.0 if value == "max" else float(value)
        except ValueError:
            speed = -1.0
        if not 0 <= speed < float("inf"):
            self.fail(f"{value!r} is neither a number from 0 nor max", param, ctx)
        return speed


_OPTIONS = (
    click.option(
        "--to", "url", metavar="URL", help="Send to this function or broker, one event after the other."
    ),
    click.option(
        "--speed",
        type=_Speed(),
        metavar="N",
        help="With --to: 1 is as recorded by the attribute time, 2 twice as fast; else (max) none waits.",
    ),
    click.option(
        "--mode",
        type=click.Choice([mode.value for mode in ContentMode]),
        help="With --to: how an event stands in its request; else binary, as ApiServerSource sends it.",
    ),
    click.option("--count", type=click.IntRange(min=1), metavar="N", help="With --to: send so many at most."),
    click.option(
        "--for",
        "seconds",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="With --to: send for so long at most.",
    ),
    beyond_option("With --to: send to another machine, whose functions then write into its cluster."),
)


def options_to(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `muster replay --to`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def is_over_http(options: Mapping[str, Any]) -> bool:
    """Whether the options say `--to`.

    Raises:
        BadInput: they do not, but say something that only goes with it.
    """
    if options["url"] is None and any(options.values()):
        raise BadInput("--speed, --mode, --count, --for and --beyond-this-machine go with --to")
    return options["url"] is not None


def send_to(
    stream: Sequence[Capture],
    *,
    url: str,
    speed: float | None,
    mode: str | None,
    count: int | None,
    seconds: float | None,
    beyond: bool,
) -> None:
    """Send events to a URL, print what is answered to each and how often.

    Raises:
        BadInput: the URL is none, or that of another machine though nobody said that it may be.
        SystemExit: with 1, something was refused.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadInput(f"--to: {url!r} is no URL of a function or broker")
    keep_to_this_machine("--to", parts.hostname, "an event makes a function write", beyond=beyond)
    content_mode = ContentMode(mode or ContentMode.BINARY)
    ready = [outgoing(capture, content_mode) for capture in stream[:count]]
    answers: list[Answered] = []
    began = monotonic()
    with told_to_stop() as stop:
        for answered in resend(ready, HttpTarget(url), Pace(speed or 0.0, seconds), stop):
            answers.append(answered)
            click.echo(f"{len(answers):>4} {_line(answered)}")
    _summary(answers, len(stream), monotonic() - began)
    if not all(one.taken for one in answers):
        raise SystemExit(1)


def _line(one: Answered) -> str:
    said = [str(one.status or "no answer"), one.reply, one.reason]
    if one.retry_after:
        said.insert(1, f"Retry-After {one.retry_after}")
    return f"{about(one.event)}: {' '.join(filter(None, said))}"


def _summary(answers: Sequence[Answered], all_of_them: int, seconds: float) -> None:
    taken = sum(one.taken for one in answers)
    sent = f"{len(answers)} of {all_of_them} events sent in {seconds:.1f} s"
    click.echo(f"{sent}: {taken} taken, {len(answers) - taken} refused")
    for status, times in sorted(Counter(one.status for one in answers).items()):
        click.echo(f"  {status or 'no answer'}: {times}")
    for reply, times in sorted(Counter(one.reply for one in answers if one.reply).items()):
        click.echo(f"  {reply}: {times}")

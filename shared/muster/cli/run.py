"""`muster run`: the local stack, its stories, and what came of them."""

from __future__ import annotations

import logging
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console

from muster.cli.bad_input import BadInput, told_in_one_line
from muster.cluster.errors import ClusterError
from muster.local.display import drawing
from muster.local.display.live import Follower, follower
from muster.local.functions import FunctionDownError
from muster.local.stack import Options, Stack
from muster.local.stories import STORIES, Scene, Story, story_named
from muster.local.stories.watching import Recorder
from muster.replay.activity import Activity
from muster.simulator.broker import CloudEvent, Report

_ANSWERS_WITHIN = 2.0
"""Seconds to wait for the functions' last answers, so that the summary has them."""

_NAMES = ", ".join(story.name for story in STORIES)


@click.command(
    "run",
    help=f"""Run the local stack and tell its stories: {_NAMES}.

    An embedded API server with the admission policies, simulated Trainer, JobSet, Job controller, scheduler
    and kubelets, the functions, and a source and a broker that are wired by eventing/. Every story is watched
    from its beginning to its end; exits with 0 only if all that had to happen did.

    With --kubeconfig no server is started and no story told: the local source, broker and functions work on
    that cluster until Ctrl-C. Nothing is installed in it. Pods are stamped only where the policies of
    eventing/admission were applied.
    """,
)
@click.option(
    "--story", "names", multiple=True, metavar="NAME", help="Only this one; may be given several times."
)
@click.option(
    "--keep", is_flag=True, help="Leave the stack up after the stories, with a kubeconfig for kubectl."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Work on this cluster instead of the embedded one.",
)
@click.option("--processes", is_flag=True, help="Run each function as a process of its own.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the embedded API server.")
def command(
    names: tuple[str, ...], kubeconfig: Path | None, port: int, *, keep: bool, processes: bool
) -> None:
    """Run the stack; the help text stands above because it names the stories."""
    with told_in_one_line():
        stories = [story_named(name) for name in names] or list(STORIES)
    if kubeconfig is not None and names:
        raise BadInput("--story: stories are told on the embedded cluster, not on that of a --kubeconfig")
    if kubeconfig is not None and not kubeconfig.is_file():
        raise BadInput(f"{kubeconfig}: No such file")
    # A shell starts what runs in its background with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    logging.getLogger("eventing").addHandler(logging.NullHandler())
    options = Options(kubeconfig, processes, port)
    with _said_in_one_line():
        held = _tell(options, stories, keep=keep) if kubeconfig is None else _work(options)
    if not held:
        raise SystemExit(1)


def _tell(options: Options, stories: Sequence[Story], *, keep: bool) -> bool:
    console = drawing.console()
    shown = follower(console)
    activities: list[Activity] = []

    def listen(activity: Activity) -> None:
        activities.append(activity)
        shown.did(activity)

    with Stack(options, listen) as stack, Recorder(stack.client) as recorder:
        with shown:
            scenes = [_told(story, stack, recorder, shown) for story in stories]
        _report(console, scenes, recorder, activities)
        for letter in stack.dead_letters:
            _tell_not_delivered(console, letter)
        if keep:
            _stay(console, stack)
    return all(scene.held for scene in scenes)


def _told(story: Story, stack: Stack, recorder: Recorder, shown: Follower) -> Scene:
    scene = Scene(story, stack.client, recorder)
    shown.began(scene)
    scene.play()
    stack.settle(_ANSWERS_WITHIN)
    shown.ended(scene)
    return scene


def _report(
    console: Console, scenes: Sequence[Scene], recorder: Recorder, activities: Sequence[Activity]
) -> None:
    console.print()
    for scene in scenes:
        console.print(drawing.summary(scene, activities))
        if not scene.held:
            for line in drawing.timeline(scene, recorder.history(scene.story.place), activities):
                console.print(line, markup=False, soft_wrap=True)
    held = sum(scene.held for scene in scenes)
    console.print(
        f"{held} of {len(scenes)} stories held", style="green" if held == len(scenes) else "bold red"
    )


def _stay(console: Console, stack: Stack) -> None:
    """Wait for Ctrl-C."""
    assert stack.server is not None  # noqa: S101 - stories are told on the embedded one only
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(stack.server.kubeconfig())
        console.print(f"API server {stack.url}, broker {stack.broker_url}", soft_wrap=True)
        console.print(f"export KUBECONFIG={path}", soft_wrap=True)
        console.print("kubectl get trainjobs,jobs,workloads,podgroups,pods -A", soft_wrap=True)
        console.print("Ctrl-C stops it.")
        _wait()


def _work(options: Options) -> bool:
    """Work on a real cluster until Ctrl-C."""
    console = drawing.console()
    shown = follower(Console(force_terminal=False, width=drawing.PLAIN_WIDTH))

    def heard(report: Report) -> None:
        if report.dead_letter is not None:
            _tell_not_delivered(console, report.event)

    with Stack(options, shown.did, heard) as stack:
        console.print(f"at work on {stack.url}, broker {stack.broker_url}; Ctrl-C stops it", soft_wrap=True)
        _wait()
    return True


def _tell_not_delivered(console: Console, letter: CloudEvent) -> None:
    console.print(f"not delivered: {letter['type']} {letter['subject']}", style="yellow", soft_wrap=True)


def _wait() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


@contextmanager
def _said_in_one_line() -> Iterator[None]:
    try:
        yield
    except (ClusterError, FunctionDownError) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(error.strerror or str(error)) from None

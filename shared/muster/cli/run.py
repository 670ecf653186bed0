"""`muster run`: run the local stack and its stories, and report the results."""

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

from muster.cli.arguments import BadInput, errors_as_bad_input
from muster.cli.cluster import KubeconfigOptions, connected
from muster.cli.output import CommandError
from muster.cli.overlays import overlay_option
from muster.cluster.errors import ClusterError
from muster.local import display
from muster.local.functions import FunctionDownError
from muster.local.stack import Stack, StackOptions
from muster.local.stories import STORIES, LocalStory, StoryRun, story_named
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity
from muster.replay.files import PRIVATE
from muster.simulator.broker import CloudEvent, Report

_SETTLE_SECONDS = 2.0
"""How long to wait for the functions' last answers, so that the report has them."""

_NAMES = ", ".join(story.name for story in STORIES)


@click.command(
    "run",
    help=f"""Run the local stack and its stories: {_NAMES}.

    An embedded API server with the admission policies, simulated Trainer, JobSet, Job controller, scheduler
    and kubelets, the functions, and a source and a broker that are wired by eventing/. Every story is watched
    from its beginning to its end; exits with 0 only if all stories passed.

    With --kubeconfig no server is started and no story runs: the local source, broker and functions work on
    that cluster until Ctrl-C. Nothing is installed in it. Pods are stamped only where the policies of
    eventing/admission were applied.
    """,
)
@click.option("--story", "names", multiple=True, metavar="NAME", help="Run only this story; repeatable.")
@click.option(
    "--keep", is_flag=True, help="Keep the stack running after the stories, with a kubeconfig for kubectl."
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Work on this cluster instead of the embedded one.",
)
@click.option("--processes", is_flag=True, help="Run each Service as a process of its own.")
@overlay_option("Kustomize folder to run, with steps of your own in it; default: Muster's own overlay.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the embedded API server.")
def command(
    names: tuple[str, ...],
    kubeconfig: Path | None,
    overlay: Path,
    port: int,
    *,
    keep: bool,
    processes: bool,
) -> None:
    """Run the stack; the help text is in the decorator because it lists the stories."""
    with errors_as_bad_input():
        stories = [story_named(name) for name in names] or list(STORIES)
    if kubeconfig is not None and names:
        raise BadInput("--story: cannot be used with --kubeconfig")
    # A shell starts background jobs with SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    logging.getLogger("eventing").addHandler(logging.NullHandler())
    options = StackOptions(kubeconfig, processes, port, overlay)
    with _cluster_errors():
        if kubeconfig is None:
            passed = _run_stories(options, stories, keep=keep)
        else:
            with connected(KubeconfigOptions(kubeconfig), "run"):
                passed = _serve_cluster(options)
    if not passed:
        raise SystemExit(1)


def _run_stories(options: StackOptions, stories: Sequence[LocalStory], *, keep: bool) -> bool:
    """Run the stories on the embedded cluster; return whether all passed."""
    console = display.console()
    follower = display.follower(console)
    activities: list[Activity] = []

    def listen(activity: Activity) -> None:
        activities.append(activity)
        follower.add_activity(activity)

    with Stack(options, listen) as stack, TimelineRecorder(stack.client) as recorder:
        with follower:
            runs = [_run_story(story, stack, recorder, follower) for story in stories]
        _report(console, runs, recorder, activities)
        for letter in stack.dead_letters:
            _report_dead_letter(console, letter)
        if keep:
            _keep_up(console, stack)
    return all(run.passed for run in runs)


def _run_story(
    story: LocalStory, stack: Stack, recorder: TimelineRecorder, follower: display.Follower
) -> StoryRun:
    run = StoryRun(story, stack.client, recorder)
    follower.story_began(run)
    run.run()
    stack.settle(_SETTLE_SECONDS)
    follower.story_ended(run)
    return run


def _report(
    console: Console, runs: Sequence[StoryRun], recorder: TimelineRecorder, activities: Sequence[Activity]
) -> None:
    console.print()
    for run in runs:
        console.print(display.story_report(run, activities))
        if not run.passed:
            for line in display.timeline(run, recorder.history(run.story.namespace), activities):
                console.print(line, markup=False, soft_wrap=True)
    passed = sum(run.passed for run in runs)
    console.print(
        f"{passed} of {len(runs)} stories passed", style="green" if passed == len(runs) else "bold red"
    )


def _keep_up(console: Console, stack: Stack) -> None:
    """Print a kubeconfig for the embedded API server, and wait for Ctrl-C."""
    assert stack.server is not None  # noqa: S101 - stories run on the embedded API server only
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        path = Path(folder) / "kubeconfig"
        path.touch(PRIVATE)
        path.write_text(stack.server.kubeconfig())
        console.print(f"API server {stack.url}, broker {stack.broker_url}", soft_wrap=True)
        console.print(f"export KUBECONFIG={path}", soft_wrap=True)
        console.print("kubectl get trainjobs,jobs,workloads,podgroups,pods -A", soft_wrap=True)
        console.print("Ctrl-C stops the stack.")
        _wait()


def _serve_cluster(options: StackOptions) -> bool:
    """Run source, broker and functions on a real cluster until Ctrl-C."""
    console = display.console()
    follower = display.follower(Console(force_terminal=False, width=display.PLAIN_WIDTH))

    def report_delivery(report: Report) -> None:
        if report.dead_letter is not None:
            _report_dead_letter(console, report.event)

    with Stack(options, follower.add_activity, report_delivery) as stack:
        console.print(f"running on {stack.url}, broker {stack.broker_url}; Ctrl-C stops it", soft_wrap=True)
        _wait()
    return True


def _report_dead_letter(console: Console, letter: CloudEvent) -> None:
    console.print(f"not delivered: {letter['type']} {letter['subject']}", style="yellow", soft_wrap=True)


def _wait() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


@contextmanager
def _cluster_errors() -> Iterator[None]:
    """Turn errors of the cluster, the functions and the port into one-line messages."""
    try:
        yield
    except (ClusterError, FunctionDownError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(error.strerror or str(error)) from None

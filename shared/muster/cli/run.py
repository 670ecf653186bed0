"""`muster run`: run the local stack and its stories, and show what happens."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from muster.cli.cluster import KubeconfigOptions, cluster_errors, connected
from muster.cli.common import BadInput, errors_as_bad_input, interrupt_by_signals
from muster.cli.overlays import overlay_option
from muster.cluster.kubeconfig import BadKubeconfigError
from muster.local import display
from muster.local.stack import Stack, StackOptions
from muster.local.stories import STORIES, LocalStory, StoryRun, story_named
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity
from muster.replay.snapshots import Objects
from muster.runtime.config import BadSettingError
from muster.simulator.broker import Report

_SETTLE_SECONDS = 2.0
"""How long to wait for the functions' last answers, so that the report has them."""

_TICK_SECONDS = 0.5

_EXAMPLE = Path(display.__file__).parent / "stories" / "indexed-job.yaml"
"""A Job to try out."""

_NAMES = ", ".join(story.name for story in STORIES)


@click.command(
    "run",
    help=f"""Run the local stack and its stories: {_NAMES}.

    An embedded API server with the admission policies, simulated Trainer, JobSet, Job controller, scheduler
    and kubelets, the functions, and a source and a broker that are wired by eventing/. Every story is watched
    from its beginning to its end: which groups its job gets, on which nodes their pods are placed, and
    whether every check passed. Exits with 0 only if all stories passed.

    With --kubeconfig no server is started and no story runs: the local source, broker and functions work on
    the current context of that file until Ctrl-C. Nothing is installed in the cluster. Pods are stamped only
    where the policies of eventing/admission were applied.
    """,
)
@click.option("--story", "names", multiple=True, metavar="NAME", help="Run only this story; repeatable.")
@click.option("--slow", is_flag=True, help="Wait a second before each event, so that you can follow.")
@click.option("-v", "--verbose", is_flag=True, help="Print every check, and what every function does.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the stack running after the stories, with a kubeconfig for kubectl, and show your own jobs.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path),
    help="Work on this cluster instead of the embedded one.",
)
@overlay_option(
    "Manifest or kustomize folder to run, with steps of your own in it; default: Muster's own overlay."
)
def command(
    names: tuple[str, ...],
    kubeconfig: Path | None,
    overlay: Path,
    *,
    slow: bool,
    verbose: bool,
    keep: bool,
) -> None:
    """Run the stack; the help text is in the decorator because it lists the stories."""
    with errors_as_bad_input():
        stories = [story_named(name) for name in names] or list(STORIES)
    if kubeconfig is not None and names:
        raise BadInput("--story: cannot be used with --kubeconfig")
    interrupt_by_signals()
    logging.getLogger("eventing").addHandler(logging.NullHandler())
    options = StackOptions(overlay=overlay, pause_seconds=float(slow))
    with _errors():
        if kubeconfig is None:
            passed = _Show(options, verbose=verbose).run(stories, keep=keep)
        else:
            with connected(KubeconfigOptions(kubeconfig), "run") as connection:
                passed = _serve_cluster(replace(options, kubeconfig=connection.kubeconfig))
    if not passed:
        raise SystemExit(1)


class _Show:
    """Runs stories on the embedded cluster and shows them."""

    def __init__(self, options: StackOptions, *, verbose: bool) -> None:
        self._options = options
        self._verbose = verbose
        self._console = display.console()
        self._lines = display.Lines(self._console)
        self._prints_activities = verbose or bool(options.pause_seconds)
        self._activities: list[Activity] = []

    def run(self, stories: Sequence[LocalStory], *, keep: bool) -> bool:
        """Run the stories; return whether all passed."""
        with Stack(self._options, self._listen) as stack, TimelineRecorder(stack.client) as recorder:
            runs = [self._run_story(story, stack, recorder) for story in stories]
            passed = sum(run.passed for run in runs)
            style = "green" if passed == len(runs) else "bold red"
            self._console.print(f"{passed} of {len(runs)} stories passed", style=style)
            for letter in stack.dead_letters:
                self._console.print(display.undelivered(letter), soft_wrap=True)
            if keep:
                self._keep_up(stack, recorder, {run.story.namespace for run in runs})
        return passed == len(runs)

    def _listen(self, activity: Activity) -> None:
        self._activities.append(activity)
        if self._prints_activities:
            self._lines.add_activity(activity)

    def _run_story(self, story: LocalStory, stack: Stack, recorder: TimelineRecorder) -> StoryRun:
        run = StoryRun(story, stack.client, recorder, pause_seconds=self._options.pause_seconds)
        run.run()
        stack.settle(_SETTLE_SECONDS)
        activities = list(self._activities)
        self._console.print(display.story_report(run, activities, every_check=self._verbose))
        if not run.passed:
            for line in display.timeline(run, recorder.history(run.story.namespace), activities):
                self._console.print(line, markup=False, soft_wrap=True)
        return run

    def _keep_up(self, stack: Stack, recorder: TimelineRecorder, of_stories: set[str]) -> None:
        """Print a kubeconfig for the embedded API server, and show the user's own jobs until Ctrl-C."""
        assert stack.server is not None  # noqa: S101 - stories run on the embedded API server only
        with tempfile.TemporaryDirectory(prefix="muster-") as folder:
            path = Path(folder) / "kubeconfig"
            path.write_text(stack.server.kubeconfig())
            for line in (
                f"API server {stack.url}, broker {stack.broker_url}",
                f"export KUBECONFIG={path}",
                "kubectl label namespace default muster.dev/gang-jobs=enabled",
                f"kubectl create -f {_EXAMPLE}",
                "kubectl get trainjobs,jobs,workloads,podgroups,pods -A",
                "What your jobs do is shown here; Ctrl-C stops the stack.",
            ):
                self._console.print(line, soft_wrap=True)
            self._prints_activities = True
            _wait(lambda: self._lines.add_jobs(_outside(recorder.objects(), of_stories)))


def _outside(objects: Objects, namespaces: set[str]) -> Objects:
    return [body for body in objects if body["metadata"].get("namespace", "") not in namespaces]


def _serve_cluster(options: StackOptions) -> bool:
    """Run source, broker and functions on a real cluster until Ctrl-C."""
    console = display.console()

    def report_delivery(report: Report) -> None:
        if report.dead_letter is not None:
            console.print(display.undelivered(report.event), soft_wrap=True)

    with Stack(options, display.Lines(console).add_activity, report_delivery) as stack:
        console.print(f"running on {stack.url}, broker {stack.broker_url}; Ctrl-C stops it", soft_wrap=True)
        _wait()
    return True


def _wait(tick: Callable[[], None] = lambda: None) -> None:
    """Wait for Ctrl-C."""
    try:
        while True:
            tick()
            time.sleep(_TICK_SECONDS)
    except KeyboardInterrupt:
        return


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors of the cluster, the kubeconfig and the functions into one-line messages."""
    try:
        with cluster_errors("the local stack"):
            yield
    except (BadKubeconfigError, BadSettingError) as error:
        raise BadInput(str(error)) from None

"""`muster run`: run the local stack and its stories, and show what happens."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click

from muster.cli.cluster import KubeconfigOptions, cluster_errors, connected
from muster.cli.common import BadInput, errors_as_bad_input, interrupt_by_signals
from muster.cli.overlays import overlay_option
from muster.cluster.kubeconfig import Kubeconfig
from muster.local import display
from muster.local.stack import Stack
from muster.local.stories.story import STORIES, LocalStory, StoryRun, story_named
from muster.local.stories.watching import TimelineRecorder
from muster.objects.text import counted
from muster.replay.activity import Activity
from muster.replay.snapshots import Objects

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
    names: tuple[str, ...], kubeconfig: Path | None, overlay: Path, *, verbose: bool, keep: bool
) -> None:
    """Run the stack; the help text is in the decorator because it lists the stories."""
    with errors_as_bad_input():
        stories = [story_named(name) for name in names] or list(STORIES)
    if kubeconfig is not None and names:
        raise BadInput("--story: cannot be used with --kubeconfig")
    interrupt_by_signals()
    logging.getLogger("eventing").addHandler(logging.NullHandler())
    if kubeconfig is None:
        with cluster_errors("the local stack"):
            _run_stories(stories, overlay, verbose=verbose, keep=keep)
    else:
        with connected(KubeconfigOptions(kubeconfig), "run") as connection:
            _serve_cluster(connection.kubeconfig, overlay)


def _run_stories(stories: Sequence[LocalStory], overlay: Path, *, verbose: bool, keep: bool) -> None:
    """Run stories on the embedded cluster and print their reports; the exit status is 1 if one failed."""
    console = display.console()
    lines = display.Lines(console)
    activities: list[Activity] = []

    def listen(activity: Activity) -> None:
        activities.append(activity)
        if verbose:
            lines.add_activity(activity)

    with Stack(overlay, listen) as stack, TimelineRecorder(stack.client) as recorder:
        passed = 0
        for story in stories:
            run = StoryRun(story, stack.client, recorder)
            passed += run.run()
            stack.settle(_SETTLE_SECONDS)
            console.print(display.story_report(run, list(activities), every_check=verbose))
        good = passed == len(stories)
        total = counted(len(stories), "story", "stories")
        console.print(f"{passed} of {total} passed", style="green" if good else "bold red")
        for letter in stack.dead_letters:
            console.print(f"not delivered: {letter['type']} {letter['subject']}", style="yellow")
        if keep:
            verbose = True
            of_stories = {story.namespace for story in stories}
            with tempfile.TemporaryDirectory(prefix="muster-") as folder:
                for line in _how_to_use(stack, Path(folder) / "kubeconfig"):
                    console.print(line, soft_wrap=True)
                _wait(lambda: lines.add_jobs(_outside(recorder.objects(), of_stories)))
    if not good:
        raise SystemExit(1)


def _outside(objects: Objects, namespaces: set[str]) -> Objects:
    return [body for body in objects if body["metadata"].get("namespace", "") not in namespaces]


def _how_to_use(stack: Stack, path: Path) -> tuple[str, ...]:
    """Write a kubeconfig for the embedded API server; return what to type in another terminal."""
    assert stack.server is not None  # noqa: S101 - stories run on the embedded API server only
    path.write_text(stack.server.kubeconfig())
    return (
        f"API server {stack.url}, broker {stack.broker_url}",
        f"export KUBECONFIG={path}",
        "kubectl label namespace default muster.dev/gang-jobs=enabled",
        f"kubectl create -f {_EXAMPLE}",
        "kubectl get trainjobs,jobs,workloads,podgroups,pods -A",
        "What your jobs do is shown here; Ctrl-C stops the stack.",
    )


def _serve_cluster(kubeconfig: Kubeconfig, overlay: Path) -> None:
    """Run source, broker and functions on a real cluster until Ctrl-C."""
    console = display.console()
    with Stack(overlay, display.Lines(console).add_activity, kubeconfig) as stack:
        console.print(f"running on {stack.url}, broker {stack.broker_url}; Ctrl-C stops it", soft_wrap=True)
        _wait()
        for letter in stack.dead_letters:
            console.print(f"not delivered: {letter['type']} {letter['subject']}", style="yellow")


def _wait(tick: Callable[[], None] = lambda: None) -> None:
    """Wait for Ctrl-C."""
    with suppress(KeyboardInterrupt):
        while True:
            tick()
            time.sleep(_TICK_SECONDS)

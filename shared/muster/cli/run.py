"""`muster run`: run the local stack and its stories, and show what happens."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from muster.cli.cluster import KubeconfigOptions, cluster_errors, connected
from muster.cli.common import BadInput, interrupt_by_signals
from muster.cli.overlays import overlay_option
from muster.cluster.kubeconfig import Kubeconfig
from muster.local import comparison, display
from muster.local.stack import Stack
from muster.local.stories.story import STORIES, LocalStory, StoryRun
from muster.local.stories.watching import TimelineRecorder
from muster.objects.text import counted
from muster.replay.activity import Activity
from muster.replay.snapshots import Objects

_SETTLE_SECONDS = 2.0
"""How long to wait for the functions' last answers, so that the report has them."""

_TICK_SECONDS = 0.5

_EACH_HOLDS_A_PART = "Every GPU is taken and no Job runs: each waits for what the other one holds."
_ALL_OR_NOTHING = (
    "A Job holds all of its GPUs or none, so one runs at once, and the other one as soon as it fits."
)

_EXAMPLE = Path(display.__file__).parent / "stories" / "indexed-job.yaml"
"""A Job to try out."""

_NAMES = ", ".join(STORIES)
_ALL = "all"


@click.command(
    "run",
    help=f"""Show what gangs are for, in ten seconds, or run stories: {_NAMES}.

    Without options two Jobs want the GPUs of one cluster, first on plain Kubernetes, then with Muster.
    Everything runs on this machine: an embedded API server with the admission policies, simulated Trainer,
    JobSet, Job controller, scheduler and kubelets, the functions, and a source and a broker that are wired by
    eventing/. A story is watched from its beginning to its end: which groups its job gets, on which nodes
    their pods are placed, and whether every check passed. Exits with 0 only if all passed.

    With --kubeconfig no server is started and no story runs: the local source, broker and functions work on
    the current context of that file until Ctrl-C. Nothing is installed in the cluster. Pods are stamped only
    where the policies of eventing/admission were applied.
    """,
)
@click.option(
    "--story",
    "names",
    multiple=True,
    type=click.Choice([*STORIES, _ALL]),
    metavar="NAME",
    help=f"Run this story; repeatable. Or: {_ALL}.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print every check, and what every function does.")
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the stack running afterwards, with a kubeconfig for kubectl, and show your own jobs.",
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
    stories = [STORIES[name] for name in (STORIES if _ALL in names else names)]
    if kubeconfig is not None and names:
        raise BadInput("--story: cannot be used with --kubeconfig")
    interrupt_by_signals()
    logging.getLogger("eventing").addHandler(logging.NullHandler())
    if kubeconfig is None:
        with cluster_errors("the local stack"):
            _run_embedded(stories, overlay, verbose=verbose, keep=keep)
    else:
        with connected(KubeconfigOptions(kubeconfig), "run") as connection:
            _serve_cluster(connection.kubeconfig, overlay)


def _run_embedded(stories: Sequence[LocalStory], overlay: Path, *, verbose: bool, keep: bool) -> None:
    """Run stories, or the comparison if there are none; the exit status is 1 if something failed."""
    console = display.console()
    lines = display.Lines(console)
    activities: list[Activity] = []

    def listen(activity: Activity) -> None:
        activities.append(activity)
        if verbose:
            lines.add_activity(activity)

    if not stories:
        console.print("Two Jobs want the same GPUs: about ten seconds, on this machine alone.")
    good = bool(stories) or _shown(lines, comparison.show_plain, "Plain Kubernetes", _EACH_HOLDS_A_PART)
    with Stack(overlay, listen) as stack, TimelineRecorder(stack.client) as recorder:
        if stories:
            good = _tell(stories, stack, recorder, activities, console, every_check=verbose)
        else:
            show = partial(comparison.show_gangs, stack.client, recorder)
            good &= _shown(lines, show, "The same Jobs with Muster", _ALL_OR_NOTHING)
        for letter in stack.dead_letters:
            console.print(f"not delivered: {letter['type']} {letter['subject']}", style="yellow")
        if keep:
            verbose = True
            own = {*(story.namespace for story in stories), *comparison.TEAMS}
            with tempfile.TemporaryDirectory(prefix="muster-") as folder:
                for line in _how_to_use(stack, Path(folder) / "kubeconfig"):
                    console.print(line, soft_wrap=True)
                _wait(lambda: lines.add_jobs(_outside(recorder.objects(), own)))
        elif not stories:
            console.print(_next_commands(), highlight=False)
    if not good:
        raise SystemExit(1)


def _shown(
    lines: display.Lines, show: Callable[[Callable[[str], None]], None], title: str, conclusion: str
) -> bool:
    """Show one side of the comparison; return whether it went as told."""
    lines.add_heading(title)
    try:
        show(lines.add)
    except comparison.NotShownError:
        lines.add_result("this took too long: is the machine busy?", good=False)
        return False
    lines.add_result(conclusion, good=conclusion == _ALL_OR_NOTHING)
    return True


def _tell(
    stories: Sequence[LocalStory],
    stack: Stack,
    recorder: TimelineRecorder,
    activities: Sequence[Activity],
    console: Console,
    *,
    every_check: bool,
) -> bool:
    """Run stories and print their reports; return whether all passed."""
    passed = 0
    for story in stories:
        run = StoryRun(story, stack.client, recorder)
        passed += run.run()
        stack.settle(_SETTLE_SECONDS)
        console.print(display.story_report(run, list(activities), every_check=every_check))
    good = passed == len(stories)
    total = counted(len(stories), "story", "stories")
    console.print(f"{passed} of {total} passed", style="green" if good else "bold red")
    return good


def _next_commands() -> str:
    """Return what to type next, as `muster` was typed here."""
    muster = "muster" if shutil.which("muster") else sys.argv[0]
    commands = {
        f"a story of a TrainJob; others: {_NAMES}": "run --story torch",
        "a cluster that stays, for kubectl and jobs of your own": "run --keep",
        "what becomes of a job, before it exists": f"explain {os.path.relpath(_EXAMPLE)}",
    }
    return "\n".join(f"\n# {text}\n{muster} {words}" for text, words in commands.items())


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

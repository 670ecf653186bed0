"""What `muster run` prints: activities, trees of groups and nodes, reports of stories."""

from __future__ import annotations

import codecs
import io
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from muster.local.stories.story import StoryRun
from muster.objects.text import counted
from muster.replay.activity import Activity
from muster.replay.gangs import GangOverview, GangState, GroupOverview, gangs_of
from muster.replay.snapshots import Objects

GOOD, WAITING, BAD = "✔", "…", "✘"
_STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
MARKS = dict.fromkeys((GangState.REFUSED, GangState.NO_GANG), BAD) | {
    GangState.WAITING: WAITING,
    GangState.PLACED: GOOD,
    GangState.FINISHED: GOOD,
}
_PLAIN_WIDTH = 160
"""Columns of output that goes into a file or a pipe."""


_IN_ASCII = {GOOD: "+", WAITING: "...", BAD: "x"}


def console() -> Console:
    """Return a console for standard output: as wide as the terminal, else of 160 columns.

    It prints ASCII in a locale without ticks, which Python hides behind UTF-8 if it is C or POSIX (PEP 540).
    """
    hidden = sys.flags.utf8_mode and "PYTHONUTF8" not in os.environ
    if isinstance(sys.stdout, io.TextIOWrapper) and (hidden or "utf" not in sys.stdout.encoding.lower()):
        codecs.register_error("muster", _in_ascii)
        sys.stdout.reconfigure(encoding="ascii", errors="muster")
    stdout = Console(highlight=False)
    return stdout if stdout.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return the replacement of characters that the locale lacks, as an error handler of `codecs` does."""
    assert isinstance(error, UnicodeEncodeError)  # noqa: S101 - standard output encodes
    return "".join(_IN_ASCII.get(one, "?") for one in error.object[error.start : error.end]), error.end


def owner_trees(objects: Objects) -> list[Tree]:
    """Return a tree for each gang: its owner, its Workload, and the Workload's groups with their nodes."""
    return [_tree(gang) for gang in gangs_of(objects)]


class Lines:
    """Prints activities as lines, and jobs when they are placed or refused."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since = time.time()
        self._shown: set[str] = set()

    def add_heading(self, text: str) -> None:
        """Print a heading; times count from it."""
        self._since = time.time()
        self._console.print(f"\n{text}", style="bold")

    def add(self, text: str) -> None:
        """Print what has just happened."""
        self._console.print(f"{time.time() - self._since:7.2f}s   {text}", markup=False, soft_wrap=True)

    def add_result(self, text: str, *, good: bool) -> None:
        """Print what came of it."""
        mark = GOOD if good else BAD
        self._console.print(f"{mark} {text}", style=_STYLES[mark], soft_wrap=True)

    def add_activity(self, activity: Activity) -> None:
        """Print an activity if the function wrote or failed."""
        if activity.acted:
            mark = GOOD if activity.outcome in {"done", "nothing"} else WAITING
            mark = BAD if activity.outcome in {"bug", "unreadable"} else mark
            event = f"{activity.about} {activity.trigger}".strip()
            result = f"{activity.step:<18} {event:<45} {activity.reason}: {activity.message}"
            line = f"{activity.at - self._since:7.2f}s {mark} {result}"
            self._console.print(line, markup=False, soft_wrap=True)

    def add_jobs(self, objects: Objects) -> None:
        """Print the trees of jobs that were placed or refused since the last time."""
        for tree in owner_trees(objects):
            text = "\n".join(str(segment.text) for segment in self._console.render(tree))
            if not str(tree.label).endswith(WAITING) and text not in self._shown:
                self._shown.add(text)
                self._console.print(tree)


def story_report(run: StoryRun, activities: Sequence[Activity], *, every_check: bool) -> RenderableType:
    """Return the report of a story that ended: its trees, its checks, and the writes of each function.

    Checks that passed have a line each only if `every_check`.
    """
    mark = GOOD if run.passed else BAD
    headline = f"{mark} {run.story.name}: {run.story.title}  {run.ended - run.began:.1f} s"
    writes: Counter[str] = Counter()
    for activity in activities:
        if activity.actions and f" {run.story.namespace}/" in activity.about:
            writes[activity.step] += activity.actions
    counts = ", ".join(f"{step} {count}" for step, count in writes.items()) or "none"
    return Group(
        Text(headline, f"bold {_STYLES[mark]}"),
        *owner_trees(run.objects),
        *_check_lines(run, every_check=every_check),
        Text(f"  writes: {counts}\n"),
    )


def _check_lines(run: StoryRun, *, every_check: bool) -> Iterator[Text]:
    failed = [check for check in run.checks if not check.passed]
    for check in run.checks if every_check else failed:
        mark = GOOD if check.passed else BAD
        detail = f" ({check.detail})" if check.detail else ""
        yield Text(f"  {mark} {check.description}{detail}", _STYLES[mark])
    if not failed:
        yield Text(f"  {counted(len(run.checks), 'check')} passed")


def _tree(gang: GangOverview) -> Tree:
    owner = gang.owner
    title = f"{owner.kind} {owner.namespace}/{owner.name}  {gang.told.reason}"
    tree = above = Tree(_label(title, gang.told.state))
    if gang.workload:
        above = tree.add(f"Workload {gang.workload}")
    for group in gang.groups:
        above.add(_group_label(group))
    return tree


def _group_label(group: GroupOverview) -> Text:
    """Return how many pods of a group are bound, and on which nodes."""
    placed = group.bound >= group.needed
    nodes = sorted(group.nodes.items())
    places = ", ".join(f"{node} x{count}" if count > 1 else node for node, count in nodes)
    text = f"{group.policy} {group.template} {group.bound}/{max(group.needed, group.members)} "
    text += f"on {places}" if nodes else "pods have a node"
    text += f", {group.gated} gated" if group.gated else ""
    text += f": {group.told.message}" if group.told.state == GangState.REFUSED else ""
    return _label(text, GangState.PLACED if placed else GangState.WAITING)


def _label(text: str, state: GangState) -> Text:
    return Text(text).append(f" {MARKS[state]}", _STYLES[MARKS[state]])

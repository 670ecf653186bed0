"""Show what `muster run` does: trees of groups, checks and activities, live on a terminal or as lines."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from muster.local.stories import StoryRun
from muster.local.stories.watching import Entry
from muster.objects.text import printable
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import OWNER_KINDS, group_of, is_gated, muster_conditions

GOOD, WAITING, BAD = "✔", "…", "✘"
_STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
PLAIN_WIDTH = 160
"""Columns of output that goes into a file or a pipe."""

RECENT = 12
"""How many activities the live view shows."""


@dataclass(frozen=True)
class Branch:
    """A node of the tree of owners, Workloads and groups.

    Attributes:
        text: its line.
        mark: GOOD, WAITING or BAD; "" for none.
        children: the nodes below it.
    """

    text: str
    mark: str
    children: tuple[Branch, ...] = ()


def console() -> Console:
    """Return a console for standard output: as wide as the terminal, else PLAIN_WIDTH."""
    stdout = Console(highlight=False)
    return stdout if stdout.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def owner_trees(objects: Objects) -> list[Branch]:
    """Return a tree for each root owner: its Workload, and the Workload's groups."""
    roots = [body for body in objects if body["kind"] in OWNER_KINDS and not _has_controller(body)]
    return [_owner_tree(root, objects) for root in sorted(roots, key=_name)]


def render_tree(branch: Branch, parent: Tree | None = None) -> Tree:
    """Return a branch as a rich Tree, added to its parent."""
    label = Text(branch.text)
    if branch.mark:
        label.append(f" {branch.mark}", _STYLES[branch.mark])
    tree = Tree(label) if parent is None else parent.add(label)
    for child in branch.children:
        render_tree(child, tree)
    return tree


def activity_line(activity: Activity, since: float) -> str:
    """Return an activity as one line, with its time in seconds since a time of the epoch."""
    mark = GOOD if activity.outcome in {"done", "nothing"} else WAITING
    mark = BAD if activity.outcome in {"bug", "unreadable"} else mark
    event = f"{activity.about} {activity.trigger}".strip()
    return f"{activity.at - since:7.2f}s {mark} {activity.step:<18} {event:<46} {_result(activity)}"


def activity_table(activities: Iterable[Activity], since: float) -> Table:
    """Return a table of activities, with their times in seconds since a time of the epoch."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("when", "function", "because of", "did"):
        table.add_column(column, no_wrap=column != "did")
    for activity in activities:
        table.add_row(
            f"+{activity.at - since:.2f}s",
            activity.step,
            f"{activity.about} {activity.trigger}",
            _result(activity),
            style=_style(activity),
        )
    return table


def story_activities(activities: Sequence[Activity], run: StoryRun) -> list[Activity]:
    """Return the activities for a story that wrote or failed."""
    return [activity for activity in activities if activity.acted and _is_of_story(activity, run)]


def headline(run: StoryRun) -> Text:
    """Return name and title of a story, whether it passed, and how long it took."""
    mark = WAITING if not run.ended else GOOD if run.passed else BAD
    seconds = f"  {run.ended - run.began:.1f} s" if run.ended else ""
    return Text(f"{mark} {run.story.name}: {run.story.title}{seconds}", style=f"bold {_STYLES[mark]}")


def check_lines(run: StoryRun) -> Iterator[Text]:
    """Yield a line for each check of a story."""
    for check in run.checks:
        mark = GOOD if check.passed else BAD
        detail = f" ({check.detail})" if check.detail else ""
        yield Text(f"  {mark} {check.description}{detail}", _STYLES[mark])


def story_report(run: StoryRun, activities: Sequence[Activity]) -> RenderableType:
    """Return the report of a story that ended: its trees, checks and activities."""
    trees = [render_tree(branch) for branch in owner_trees(run.objects)]
    table = activity_table(story_activities(activities, run), run.began)
    return Group(headline(run), *trees, *check_lines(run), table, Text(""))


def timeline(run: StoryRun, history: Sequence[Entry], activities: Sequence[Activity]) -> Iterator[str]:
    """Yield all activities for a story and all changes of its objects as lines, in order of time."""
    lines = [
        (activity.at, activity_line(activity, run.began))
        for activity in activities
        if _is_of_story(activity, run)
    ]
    lines += [(entry.at, f"{entry.at - run.began:7.2f}s   {_change(entry)}") for entry in history]
    yield from (text for _, text in sorted(lines))


class Follower(Protocol):
    """Shows activities and stories while they happen."""

    def __enter__(self) -> Self:
        """Start to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        ...

    def add_activity(self, activity: Activity) -> None:
        """Show an activity."""
        ...

    def story_began(self, run: StoryRun) -> None:
        """Show that a story began."""
        ...

    def story_ended(self, run: StoryRun) -> None:
        """Show that a story ended."""
        ...


class LineFollower:
    """Prints a line for each activity."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def add_activity(self, activity: Activity) -> None:
        """Print a line if the function wrote or failed."""
        if activity.acted:
            self._print(activity_line(activity, self._since))

    def story_began(self, run: StoryRun) -> None:
        """Print name and title of the story."""
        self._print(f"{run.began - self._since:7.2f}s   {run.story.name}: {run.story.title}")

    def story_ended(self, run: StoryRun) -> None:
        """Print whether the story passed."""
        verdict = "passed" if run.passed else "FAILED"
        self._print(f"{run.ended - self._since:7.2f}s   {run.story.name} {verdict}")

    def _print(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


class LiveFollower:
    """Shows the stories, the trees of the present story and the last activities on a terminal."""

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._since = time.time()
        self._recent: list[Activity] = []
        self._runs: list[StoryRun] = []
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=10, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def add_activity(self, activity: Activity) -> None:
        """Show the activity among the last ones if the function wrote or failed."""
        if activity.acted:
            with self._lock:
                self._recent = [*self._recent, activity][-RECENT:]

    def story_began(self, run: StoryRun) -> None:
        """Show the headline and the trees of the story."""
        with self._lock:
            self._runs.append(run)

    def story_ended(self, run: StoryRun) -> None:
        """Do nothing: the headline of the story shows it."""

    def _render(self) -> RenderableType:
        with self._lock:
            recent, runs = list(self._recent), list(self._runs)
        if not runs:
            return Spinner("dots", Text(f"the local stack comes up, {time.time() - self._since:.0f} s"))
        headlines = [headline(run) for run in runs]
        trees = [render_tree(branch) for branch in owner_trees(runs[-1].objects)]
        lines = (
            Text(activity_line(activity, self._since), no_wrap=True, overflow="ellipsis")
            for activity in recent
        )
        return Group(*headlines, *trees, Text(""), *lines)


def follower(console: Console) -> Follower:
    """Return a LiveFollower on a terminal, else a LineFollower."""
    return LiveFollower(console) if console.is_terminal else LineFollower(console)


def _is_of_story(activity: Activity, run: StoryRun) -> bool:
    return f" {run.story.namespace}/" in activity.about


def _change(entry: Entry) -> str:
    body = entry.object
    parts = [f"{entry.change.lower():<9} {entry.kind} {entry.name}"]
    if entry.kind == "Pod":
        parts.append("gated" if is_gated(body) else body["spec"].get("nodeName") or "no node")
    conditions = (body.get("status") or {}).get("conditions") or []
    parts += [
        f"{condition['type']}={condition['status']}/{condition.get('reason', '')}" for condition in conditions
    ]
    return ", ".join(parts)


def _owner_tree(root: Object, objects: Objects) -> Branch:
    metadata = root["metadata"]
    groups = [body for body in objects if body["kind"] == "PodGroup" and _owned_by(body, metadata["uid"])]
    leaves = tuple(_group_branch(group, objects) for group in sorted(groups, key=_name))
    workloads = [body for body in objects if body["kind"] == "Workload" and _owned_by(body, metadata["uid"])]
    children = tuple(Branch(f"Workload {_name(workload)}", "", leaves) for workload in workloads) or leaves
    text = f"{root['kind']} {metadata['namespace']}/{metadata['name']}"
    scheduled = next(
        (entry for entry in muster_conditions(root) if entry["type"] == "PodGroupsScheduled"), None
    )
    if scheduled is None:
        return Branch(text, WAITING, children)
    failed = scheduled["reason"] in {"Unschedulable", "SchedulerError"}
    mark = GOOD if scheduled["status"] == "True" else BAD if failed else WAITING
    return Branch(f"{text}  {scheduled['reason']}", mark, children)


def _group_branch(group: Object, objects: Objects) -> Branch:
    metadata, spec = group["metadata"], group["spec"]
    group_key = (metadata["name"], metadata["namespace"])
    pods = [
        body
        for body in objects
        if body["kind"] == "Pod" and (group_of(body), body["metadata"]["namespace"]) == group_key
    ]
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    gated = sum(is_gated(pod) for pod in pods)
    gang = spec["schedulingPolicy"].get("gang")
    expected = max(gang["minCount"] if gang else 1, len(pods))
    template = (spec.get("workloadRef") or {}).get("templateName", metadata["name"])
    text = f"{'gang' if gang else 'basic'} {template} {bound}/{expected} bound"
    if gated:
        text += f", {gated} gated"
    finished = sum((pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"} for pod in pods)
    if finished:
        text += f", {finished} finished"
    return Branch(text, GOOD if bound >= expected else WAITING)


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


def _has_controller(body: Object) -> bool:
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner["kind"] in OWNER_KINDS for owner in owners)


def _owned_by(body: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])


def _result(activity: Activity) -> str:
    if activity.outcome == "come_again" and not activity.actions:
        return f"{activity.reason}, the event is delivered again"
    return printable(f"{activity.reason}: {activity.message}")


def _style(activity: Activity) -> str:
    return "" if activity.outcome == "done" else "yellow" if activity.outcome == "come_again" else "red"

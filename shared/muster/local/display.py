"""Show what happens on the local stack: trees of groups and nodes, reports of stories, activities."""

from __future__ import annotations

import _thread
import os
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from muster.local.stories import StoryRun
from muster.local.stories.watching import Entry
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import OWNER_KINDS, group_of, is_gated, muster_conditions
from muster.simulator.broker import CloudEvent

GOOD, WAITING, BAD = "✔", "…", "✘"
STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
PLAIN_WIDTH = 160
"""Columns of output that goes into a file or a pipe."""

FOLD = 110
"""Below so many columns the result of an activity stands under its event."""

_INDENT = "  "
_UNDER_EVENT = " " * 11


class LocalConsole(Console):
    """A console that ends the command without a trace when the reader of its output has gone.

    Attributes:
        reader_gone: whether it has gone.
    """

    reader_gone = False

    def on_broken_pipe(self) -> None:
        """Print nothing more, and end the main thread by BrokenPipeError or KeyboardInterrupt."""
        self.quiet = self.reader_gone = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if threading.current_thread() is threading.main_thread():
            raise BrokenPipeError
        _thread.interrupt_main()


def undelivered(letter: CloudEvent) -> Text:
    """Return the line for an event that became a dead letter; its sender chose type and subject."""
    return Text(f"not delivered: {letter['type']} {letter['subject']}", "yellow")


def console() -> LocalConsole:
    """Return a console for standard output: as wide as the terminal, else PLAIN_WIDTH."""
    stdout = LocalConsole(highlight=False)
    return stdout if stdout.is_terminal else LocalConsole(highlight=False, width=PLAIN_WIDTH)


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


def owner_trees(objects: Objects) -> list[Branch]:
    """Return a tree for each root owner: its Workload, and the Workload's groups with their nodes."""
    roots = [body for body in objects if body["kind"] in OWNER_KINDS and not _has_controller(body)]
    return [_owner_tree(root, objects) for root in sorted(roots, key=_name)]


def render_tree(branch: Branch, parent: Tree | None = None) -> Tree:
    """Return a branch as a rich Tree, added to its parent."""
    label = Text(branch.text)
    if branch.mark:
        label.append(f" {branch.mark}", STYLES[branch.mark])
    tree = Tree(label) if parent is None else parent.add(label)
    for child in branch.children:
        render_tree(child, tree)
    return tree


def activity_lines(activity: Activity, since: float, columns: int, *, short: bool = False) -> list[str]:
    """Return an activity in one line, or below FOLD columns with its result under it.

    Args:
        activity: the activity.
        since: the time in seconds of the epoch from which its time counts.
        columns: of the terminal.
        short: whether a result that is folded gets one line at most.
    """
    mark = GOOD if activity.outcome in {"done", "nothing"} else WAITING
    mark = BAD if activity.outcome in {"bug", "unreadable"} else mark
    event = f"{activity.about} {activity.trigger}".strip()
    head = f"{activity.at - since:7.2f}s {mark} {activity.step:<18} {event}"
    if columns >= FOLD:
        return [f"{head:<75} {_result(activity)}"]
    width = max(20, columns - len(_UNDER_EVENT))
    result = textwrap.wrap(_result(activity), width, break_on_hyphens=False)
    if short and len(result) > 1:
        result = [textwrap.shorten(_result(activity), width, placeholder=" …")]
    return [head, *(f"{_UNDER_EVENT}{line}" for line in result)]


def headline(run: StoryRun) -> Text:
    """Return name and title of a story, whether it passed, and how long it took."""
    mark = WAITING if not run.ended else GOOD if run.passed else BAD
    seconds = f"  {run.ended - run.began:.1f} s" if run.ended else ""
    return Text(f"{mark} {run.story.name}: {run.story.title}{seconds}", style=f"bold {STYLES[mark]}")


def story_report(run: StoryRun, activities: Sequence[Activity], *, every_check: bool) -> RenderableType:
    """Return the report of a story that ended: its trees, its checks, and the writes of the functions.

    Args:
        run: of the story.
        activities: of all functions so far.
        every_check: whether passed checks have a line each, too.
    """
    trees = [render_tree(branch) for branch in owner_trees(run.objects)]
    return Group(
        headline(run), *trees, *_check_lines(run, every_check=every_check), _writes(run, activities), ""
    )


def timeline(run: StoryRun, history: Sequence[Entry], activities: Sequence[Activity]) -> Iterator[str]:
    """Yield all activities for a story and all changes of its objects as lines, in order of time."""
    lines = [
        (activity.at, activity_lines(activity, run.began, PLAIN_WIDTH)[0])
        for activity in activities
        if is_of_story(activity, run)
    ]
    lines += [(entry.at, f"{entry.at - run.began:7.2f}s   {_change(entry)}") for entry in history]
    yield from (text for _, text in sorted(lines))


def is_of_story(activity: Activity, run: StoryRun) -> bool:
    """Whether an activity is about an object of a story."""
    return f" {run.story.namespace}/" in activity.about


def _check_lines(run: StoryRun, *, every_check: bool) -> Iterator[RenderableType]:
    failed = [check for check in run.checks if not check.passed]
    for check in run.checks if every_check else failed:
        mark = GOOD if check.passed else BAD
        detail = f" ({check.detail})" if check.detail else ""
        yield _indented(f"{mark} {check.description}{detail}", STYLES[mark])
    if not failed:
        yield _indented(f"{len(run.checks)} checks passed")


def _writes(run: StoryRun, activities: Iterable[Activity]) -> RenderableType:
    """Return how many writes each function made for a story, in the order of their first ones."""
    counts: Counter[str] = Counter()
    for activity in activities:
        if is_of_story(activity, run) and activity.actions:
            counts[activity.step] += activity.actions
    writes = ", ".join(f"{step} {count}" for step, count in counts.items()) or "none"
    return _indented(f"writes: {writes}")


def _indented(text: str, style: str = "") -> Padding:
    return Padding(Text(text, style), (0, 0, 0, len(_INDENT)), expand=False)


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
    if scheduled["status"] != "True" and leaves and all(leaf.mark == GOOD for leaf in leaves):
        return Branch(f"{text}  placed, its condition follows", WAITING, children)
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
    nodes = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    gang = spec["schedulingPolicy"].get("gang")
    expected = max(gang["minCount"] if gang else 1, len(pods))
    template = (spec.get("workloadRef") or {}).get("templateName", metadata["name"])
    bound, gated = nodes.total(), sum(is_gated(pod) for pod in pods)
    finished = sum((pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"} for pod in pods)
    places = f"on {_places(nodes)}" if nodes else "pods have a node"
    text = f"{'gang' if gang else 'basic'} {template} {bound}/{expected} {places}"
    text += f", {gated} gated" if gated else ""
    text += f", {finished} finished" if finished else ""
    return Branch(text, GOOD if bound >= expected else WAITING)


def _places(nodes: Counter[str]) -> str:
    """Return the nodes with the number of pods on each: `node-1 x2, node-2`."""
    return ", ".join(f"{node} x{count}" if count > 1 else node for node, count in sorted(nodes.items()))


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


def _has_controller(body: Object) -> bool:
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner["kind"] in OWNER_KINDS for owner in owners)


def _owned_by(body: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])


def _result(activity: Activity) -> str:
    if activity.outcome == "requeue" and not activity.actions:
        return f"{activity.reason}, the event is delivered again"
    return f"{activity.reason}: {activity.message}"

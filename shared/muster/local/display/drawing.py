"""What `muster run` shows: the tree of groups with their states, who did what when, and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from muster.local.stories import Scene
from muster.local.stories.watching import Entry
from muster.replay import summary as outline
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects

GOOD, WAITING, BAD = "✔", "…", "✘"
_STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
PLAIN_WIDTH = 160
"""Columns of output that goes into a file or a pipe."""


@dataclass(frozen=True)
class Branch:
    """One line of the tree, and what hangs on it.

    Attributes:
        text: what it is.
        mark: GOOD, WAITING or BAD; "" for none.
        below: its children.
    """

    text: str
    mark: str
    below: tuple[Branch, ...] = ()


def console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for a log."""
    shown = Console(highlight=False)
    return shown if shown.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def forest(objects: Objects) -> list[Branch]:
    """A tree for every root owner: its Workload, and that one's groups."""
    roots = [one for one in objects if one["kind"] in outline.OWNER_KINDS and not _controlled(one)]
    return [_owner(root, objects) for root in sorted(roots, key=lambda one: str(one["metadata"]["name"]))]


def drawn(branch: Branch, tree: Tree | None = None) -> Tree:
    """A branch as rich draws it."""
    label = Text(branch.text)
    if branch.mark:
        label.append(f" {branch.mark}", _STYLES[branch.mark])
    here = Tree(label) if tree is None else tree.add(label)
    for below in branch.below:
        drawn(below, here)
    return here


def line(activity: Activity, since: float) -> str:
    """What a function did, on one line."""
    mark = GOOD if activity.outcome in {"done", "nothing"} else WAITING
    mark = BAD if activity.outcome in {"bug", "unreadable"} else mark
    about = f"{activity.about} {activity.happened}".strip()
    return f"{activity.at - since:7.2f}s {mark} {activity.step:<18} {about:<46} {_did(activity)}"


def table_of(activities: Iterable[Activity], since: float) -> Table:
    """Which function did what when."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("when", "function", "because of", "did"):
        table.add_column(column, no_wrap=column != "did")
    for one in activities:
        because = f"{one.about} {one.happened}"
        table.add_row(f"+{one.at - since:.2f}s", one.step, because, _did(one), style=_style_of(one))
    return table


def of_story(activities: Sequence[Activity], scene: Scene) -> list[Activity]:
    """What the functions did for a story, where it wrote or went wrong."""
    return [one for one in activities if one.acted and f" {scene.story.place}/" in one.about]


def headline(scene: Scene) -> Text:
    """The story and how it stands."""
    mark = WAITING if not scene.ended else GOOD if scene.held else BAD
    seconds = f"  {scene.ended - scene.begun:.1f} s" if scene.ended else ""
    return Text(f"{mark} {scene.story.name}: {scene.story.title}{seconds}", style=f"bold {_STYLES[mark]}")


def expectations(scene: Scene) -> Iterator[Text]:
    """What had to hold, and whether it did."""
    for check in scene.checks:
        mark = GOOD if check.held else BAD
        yield Text(
            f"  {mark} {check.sentence}" + (f" ({check.detail})" if check.detail else ""), _STYLES[mark]
        )


def summary(scene: Scene, activities: Sequence[Activity]) -> RenderableType:
    """A story that was told: its tree, what had to hold, and who did what when."""
    trees = [drawn(branch) for branch in forest(scene.objects)]
    told = table_of(of_story(activities, scene), scene.begun)
    return Group(headline(scene), *trees, *expectations(scene), told, Text(""))


def timeline(scene: Scene, history: Sequence[Entry], activities: Sequence[Activity]) -> Iterator[str]:
    """All that was seen of a story that failed, in order of time."""
    events = [(one.at, line(one, scene.begun)) for one in activities if f" {scene.story.place}/" in one.about]
    events += [(one.at, f"{one.at - scene.begun:7.2f}s   {_changed(one)}") for one in history]
    yield from (text for _, text in sorted(events))


def _changed(entry: Entry) -> str:
    found = entry.object
    told = [f"{entry.change.lower():<9} {entry.kind} {entry.name}"]
    if entry.kind == "Pod":
        told.append("gated" if outline.is_gated(found) else found["spec"].get("nodeName") or "no node")
    conditions = (found.get("status") or {}).get("conditions") or []
    told += [f"{one['type']}={one['status']}/{one.get('reason', '')}" for one in conditions]
    return ", ".join(told)


def _owner(root: Object, objects: Objects) -> Branch:
    metadata = root["metadata"]
    groups = [one for one in objects if one["kind"] == "PodGroup" and _owned_by(one, metadata["uid"])]
    leaves = tuple(
        _group(one, objects) for one in sorted(groups, key=lambda one: str(one["metadata"]["name"]))
    )
    names = [
        one["metadata"]["name"]
        for one in objects
        if one["kind"] == "Workload" and _owned_by(one, metadata["uid"])
    ]
    below = tuple(Branch(f"Workload {name}", "", leaves) for name in names) or leaves
    placed = next((one for one in outline.conditions_of(root) if one["type"] == "PodGroupsScheduled"), None)
    text = f"{root['kind']} {metadata['namespace']}/{metadata['name']}"
    if placed is None:
        return Branch(text, WAITING, below)
    bad = placed["reason"] in {"Unschedulable", "SchedulerError"}
    mark = GOOD if placed["status"] == "True" else BAD if bad else WAITING
    return Branch(f"{text}  {placed['reason']}", mark, below)


def _group(group: Object, objects: Objects) -> Branch:
    metadata, spec = group["metadata"], group["spec"]
    pods = [
        one
        for one in objects
        if one["kind"] == "Pod"
        and (outline.group_of(one), one["metadata"]["namespace"]) == (metadata["name"], metadata["namespace"])
    ]
    bound = sum(bool(pod["spec"].get("nodeName")) for pod in pods)
    gated = sum(outline.is_gated(pod) for pod in pods)
    gang = spec["schedulingPolicy"].get("gang")
    wanted = max(gang["minCount"] if gang else 1, len(pods))
    template = (spec.get("workloadRef") or {}).get("templateName", metadata["name"])
    text = f"{'gang' if gang else 'basic'} {template} {bound}/{wanted} bound"
    if gated:
        text += f", {gated} gated"
    finished = sum((pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"} for pod in pods)
    if finished:
        text += f", {finished} finished"
    return Branch(text, GOOD if bound >= wanted else WAITING)


def _controlled(found: Object) -> bool:
    owners = found["metadata"].get("ownerReferences") or []
    return any(one.get("controller") and one["kind"] in outline.OWNER_KINDS for one in owners)


def _owned_by(found: Object, uid: str) -> bool:
    return any(one["uid"] == uid for one in found["metadata"].get("ownerReferences") or [])


def _did(activity: Activity) -> str:
    if activity.outcome == "come_again" and not activity.actions:
        return f"{activity.reason}, the event comes again"
    return f"{activity.reason}: {activity.message}"


def _style_of(activity: Activity) -> str:
    return "" if activity.outcome == "done" else "yellow" if activity.outcome == "come_again" else "red"

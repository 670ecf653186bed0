"""What `muster run` prints: activities, trees of groups and nodes, reports of stories."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from muster.local.stories.story import StoryRun
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import OWNER_KINDS, group_of, is_gated, muster_conditions

GOOD, WAITING, BAD = "✔", "…", "✘"
_STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
_PLAIN_WIDTH = 160
"""Columns of output that goes into a file or a pipe."""


def console() -> Console:
    """Return a console for standard output: as wide as the terminal, else of 160 columns."""
    stdout = Console(highlight=False)
    return stdout if stdout.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


@dataclass(frozen=True)
class Branch:
    """A node of the tree of owners, Workloads and groups; its mark is GOOD, WAITING, BAD or ""."""

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
        label.append(f" {branch.mark}", _STYLES[branch.mark])
    tree = Tree(label) if parent is None else parent.add(label)
    for child in branch.children:
        render_tree(child, tree)
    return tree


class Lines:
    """Prints activities as lines, and jobs when they are placed or refused."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since = time.time()
        self._shown: set[str] = set()

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
            if tree.mark != WAITING and repr(tree) not in self._shown:
                self._shown.add(repr(tree))
                self._console.print(render_tree(tree))


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
        *map(render_tree, owner_trees(run.objects)),
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
        yield Text(f"  {len(run.checks)} checks passed")


def _owner_tree(root: Object, objects: Objects) -> Branch:
    metadata = root["metadata"]
    owned = [body for body in objects if _owned_by(body, metadata["uid"])]
    groups = sorted((body for body in owned if body["kind"] == "PodGroup"), key=_name)
    leaves = tuple(_group_branch(group, objects) for group in groups)
    workloads = [body for body in owned if body["kind"] == "Workload"]
    children = tuple(Branch(f"Workload {_name(workload)}", "", leaves) for workload in workloads) or leaves
    text = f"{root['kind']} {metadata['namespace']}/{metadata['name']}"
    conditions = {condition["type"]: condition for condition in muster_conditions(root)}
    scheduled = conditions.get("PodGroupsScheduled")
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
    places = ", ".join(f"{node} x{count}" if count > 1 else node for node, count in sorted(nodes.items()))
    text = f"{'gang' if gang else 'basic'} {template} {bound}/{expected} "
    text += f"on {places}" if nodes else "pods have a node"
    text += f", {gated} gated" if gated else ""
    return Branch(text, GOOD if bound >= expected else WAITING)


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


def _has_controller(body: Object) -> bool:
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner["kind"] in OWNER_KINDS for owner in owners)


def _owned_by(body: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])

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
from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.objects.text import counted
from muster.policy.status.group_status import with_shortfall
from muster.replay.activity import Activity
from muster.replay.snapshots import Object, Objects
from muster.replay.summary import OWNER_KINDS, group_of, is_gated, muster_conditions

GOOD, WAITING, BAD = "✔", "…", "✘"
_STYLES = {GOOD: "green", WAITING: "yellow", BAD: "red"}
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
    """Return a tree for each root owner: its Workload, and the Workload's groups with their nodes."""
    roots = [body for body in objects if body["kind"] in OWNER_KINDS and not _has_controller(body)]
    return [_owner_tree(root, objects) for root in sorted(roots, key=_name)]


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


def _owner_tree(root: Object, objects: Objects) -> Tree:
    metadata = root["metadata"]
    owned = [body for body in objects if _owned_by(body, metadata["uid"])]
    groups = sorted((body for body in owned if body["kind"] == "PodGroup"), key=_name)
    labels = [_group_label(group, objects) for group in groups]
    scheduled = {one["type"]: one for one in muster_conditions(root)}.get("PodGroupsScheduled", {})
    reason, mark = scheduled.get("reason", ""), WAITING
    if scheduled.get("status") == "True":
        mark = GOOD
    elif labels and all(label.plain.endswith(GOOD) for label in labels):
        reason = "placed, its condition follows"
    elif reason in {"Unschedulable", "SchedulerError"}:
        mark = BAD
    tree = above = Tree(_label(f"{root['kind']} {metadata['namespace']}/{metadata['name']}  {reason}", mark))
    for workload in owned:
        if workload["kind"] == "Workload":
            above = tree.add(f"Workload {_name(workload)}")
    for label in labels:
        above.add(label)
    return tree


def _group_label(group: Object, objects: Objects) -> Text:
    """Return how many pods of a group are bound, and on which nodes."""
    spec, place = group["spec"], (_name(group), group["metadata"]["namespace"])
    every = (body for body in objects if body["kind"] == "Pod")
    pods = [pod for pod in every if (group_of(pod), pod["metadata"]["namespace"]) == place]
    nodes = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
    gang = spec["schedulingPolicy"].get("gang")
    expected = max(gang["minCount"] if gang else 1, len(pods))
    template = (spec.get("workloadRef") or {}).get("templateName", _name(group))
    bound, gated = nodes.total(), sum(map(is_gated, pods))
    places = ", ".join(f"{node} x{count}" if count > 1 else node for node, count in sorted(nodes.items()))
    text = f"{'gang' if gang else 'basic'} {template} {bound}/{expected} "
    text += f"on {places}" if nodes else "pods have a node"
    text += f", {gated} gated" if gated else ""
    refusal = PodGroup.read(group).refusal
    text += f": {with_shortfall(refusal[1], map(Pod.read, pods))}" if refusal else ""
    return _label(text, GOOD if bound >= expected else WAITING)


def _label(text: str, mark: str) -> Text:
    return Text(text).append(f" {mark}", _STYLES[mark])


def _name(body: Object) -> str:
    return str(body["metadata"]["name"])


def _has_controller(body: Object) -> bool:
    owners = body["metadata"].get("ownerReferences") or []
    return any(owner.get("controller") and owner["kind"] in OWNER_KINDS for owner in owners)


def _owned_by(body: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])

"""What holds for every story, told from everything that was seen and not from its end alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.local.stories.watching import Seen
from muster.policy.marks import GROUP
from muster.replay import summary as outline
from muster.replay.snapshots import Object


@dataclass(frozen=True)
class Check:
    """One expectation.

    Attributes:
        sentence: what had to hold.
        held: whether it did.
        detail: what was seen instead.
    """

    sentence: str
    held: bool
    detail: str = ""


Groups = Mapping[str, int]
"""Of each group its minCount; 0 for a basic one."""


def checks(history: Sequence[Seen], groups: Groups) -> list[Check]:
    """All rules, on the changes of one story in the order of their resourceVersions."""
    found: list[Check] = []
    for sentence, rule in RULES.items():
        faults = list(rule(history, groups))
        found.append(Check(sentence, not faults, "; ".join(faults)))
    return found


def stamped_at_birth(history: Sequence[Seen], groups: Groups) -> Iterator[str]:
    """No pod is born without the name of its group, or free to go."""
    born = [one for one in history if one.kind == "Pod" and one.change == "ADDED"]
    if len(born) < sum(max(1, size) for size in groups.values()):
        yield f"only {len(born)} pods were born"
    for one in born:
        if not outline.group_of(one.object) or not outline.is_gated(one.object):
            yield f"pod {one.name} was born without group or gate"


def groups_as_asked(history: Sequence[Seen], groups: Groups) -> Iterator[str]:
    """The Workload and the PodGroups have the groups and minCounts of the story."""
    workloads = [one.object for one in _added(history, "Workload")]
    if len(workloads) != 1:
        yield f"{len(workloads)} Workloads"
    for workload in workloads:
        templates = {one["name"]: _size(one) for one in workload["spec"]["podGroupTemplates"]}
        if templates != groups:
            yield f"Workload {workload['metadata']['name']} has {templates}"
    latest = {one.name: one.object for one in history if one.kind == "PodGroup"}
    made = {one["spec"]["workloadRef"]["templateName"]: _size(one["spec"]) for one in latest.values()}
    if made != groups:
        yield f"the PodGroups are {made}"


def in_order(history: Sequence[Seen], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    """First the Workload, then the PodGroups, then the first binding."""
    workload = min((one.version for one in _added(history, "Workload")), default=0)
    made = [one.version for one in _added(history, "PodGroup")]
    first_bound = min((version for _, version in _bindings(history)), default=0)
    if not workload < min(made, default=0) <= max(made, default=0) < first_bound:
        yield f"Workload {workload}, PodGroups {made}, first binding {first_bound}"


def gates_after_groups(history: Sequence[Seen], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - likewise
    """No gate is lifted before the PodGroup exists."""
    made = {one.name: one.version for one in _added(history, "PodGroup")}
    lifted: set[str] = set()
    for one in history:
        if one.kind == "Pod" and one.name not in lifted and not outline.is_gated(one.object):
            lifted.add(one.name)
            if not 0 < made.get(outline.group_of(one.object), 0) < one.version:
                yield f"pod {one.name} was let go before its PodGroup existed"


def bound_together(history: Sequence[Seen], groups: Groups) -> Iterator[str]:
    """When the first pod of a gang gets a node, minCount of them exist without a gate, and all get one."""
    for group, size in groups.items():
        bound = [(pod, version) for pod, version in _bindings(history) if group_label(pod) == group]
        free = {
            one.name
            for one in history
            if one.kind == "Pod"
            and group_label(one.object) == group
            and not outline.is_gated(one.object)
            and one.version <= min((version for _, version in bound), default=0)
        }
        if len(free) < size:
            yield f"{group}: a pod was bound when {len(free)} of {size} were ready"
        if len(bound) < max(1, size):
            yield f"{group}: {len(bound)} of {max(1, size)} pods were bound"


def specs_untouched(history: Sequence[Seen], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - likewise
    """Nobody wrote to the spec of what the user created."""
    first = next((one for one in history if not one.object["metadata"].get("ownerReferences")), None)
    if first is None:
        yield "nothing was seen"
        return
    same = [one for one in history if (one.kind, one.name) == (first.kind, first.name)]
    if any(one.object["spec"] != first.object["spec"] for one in same):
        yield f"the spec of {first.kind} {first.name} changed"


Rule = Callable[[Sequence[Seen], Groups], Iterator[str]]

RULES: Mapping[str, Rule] = {
    "every pod was born with its group's name and a gate": stamped_at_birth,
    "Workload and PodGroups have the groups and minCounts that were expected": groups_as_asked,
    "the Workload came first, then the PodGroups, then the first binding": in_order,
    "no gate was lifted before the PodGroup existed": gates_after_groups,
    "every gang was bound together": bound_together,
    "nobody changed the spec of what the user created": specs_untouched,
}


def group_label(pod: Object) -> str:
    """The mark of a pod."""
    return str((pod["metadata"].get("labels") or {}).get(GROUP, ""))


def _added(history: Sequence[Seen], kind: str) -> list[Seen]:
    return [one for one in history if one.kind == kind and one.change == "ADDED"]


def _bindings(history: Sequence[Seen]) -> list[tuple[Object, int]]:
    """Each pod when it was first seen with a node."""
    bound: dict[str, tuple[Object, int]] = {}
    for one in history:
        if one.kind == "Pod" and one.object["spec"].get("nodeName"):
            bound.setdefault(one.name, (one.object, one.version))
    return list(bound.values())


def _size(holder: Object) -> int:
    return int((holder["schedulingPolicy"].get("gang") or {}).get("minCount", 0))

"""An explanation for people to read in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from muster.operator.explanation.explain import Explanation, Step
from muster.policy.groups import Group
from muster.policy.kinds import Gang

NAMES_SHOWN = 4
"""Of so many PodGroups of one template the names are all shown; of more the first and the last."""


def as_text(explained: Explanation) -> str:
    """The explanation in lines: policy, groups, steps, labels to add, warnings."""
    return "\n".join(_lines(explained)) + "\n"


def _lines(explained: Explanation) -> Iterator[str]:
    yield str(explained.owner)
    yield f"  policy: {explained.ruling}"
    for home in explained.homes[1:]:
        yield f"          (not looked at: {home.where})"
    if explained.left_alone is not None:
        yield f"  left alone: {explained.left_alone.reason}: {explained.left_alone.message}"
    if explained.flaw is not None:
        yield f"  cannot be had: {explained.flaw.reason}: {explained.flaw.message}"
        names = "of their names" if explained.tree else "for the pods there are"
        yield f"  instead of these groups, basic stand-ins {names}:"
    elif explained.tree:
        yield "  groups:"
    if explained.gang is not None:
        for root in explained.tree:
            yield from _branch(root, explained.gang, "    ", "    ")
    yield "  steps:"
    for step in explained.steps:
        yield from _step(step)
    if explained.labels:
        yield "  labels to add, or to change where the job is made:"
        yield from (f"    {path}: {label}: {value}" for path, label, value in explained.labels)
    yield from (f"  warning: {warning}" for warning in explained.warnings)


def _branch(group: Group, gang: Gang, lead: str, below: str) -> Iterator[str]:
    yield f"{lead}{group.name}: {described(group)}"
    yield from (f"{below}  {line}" for line in names_of(group, gang))
    for index, child in enumerate(group.children):
        last = index == len(group.children) - 1
        yield from _branch(
            child, gang, f"{below}{'└─ ' if last else '├─ '}", f"{below}{'   ' if last else '│  '}"
        )


def described(group: Group) -> str:
    """A group in words: `gang of 2 of 3 groups, all within one zone`."""
    have = group.instances if group.children else max([0, *group.sizes.values()])
    unit = ("group" if group.children else "pod") + ("" if have == 1 else "s")
    size = f"gang of {group.template_min_count}" if group.gang else "basic"
    words = [f"{size} of {have} {unit}" if group.gang else f"{size}, {have} {unit}"]
    constraints = group.settings.get("schedulingConstraints") or {}
    words += [f"within one {one['key']}" for one in constraints.get("topology") or []]
    if "all" in group.settings.get("disruptionMode", {}):
        words.append("disrupted as a whole")
    if "preemptionPolicy" in group.settings:
        words.append(f"preemption {group.settings['preemptionPolicy']}")
    if "resourceClaims" in group.settings:
        words.append(f"shared claims {', '.join(one['name'] for one in group.settings['resourceClaims'])}")
    if group.priority_class_name:
        words.append(f"priority class {group.priority_class_name}")
    return ", ".join(words)


def names_of(group: Group, gang: Gang) -> list[str]:
    """The names of its PodGroups with their pods, or of its CompositePodGroup."""
    if group.children:
        return [f"CompositePodGroup {gang.pod_group_name(group.name, '')}"]
    lines = [
        f"PodGroup {gang.pod_group_name(group.name, suffix)} ({pods} pod{'' if pods == 1 else 's'})"
        for suffix, pods in group.sizes.items()
    ]
    if len(lines) <= NAMES_SHOWN:
        return lines
    return [lines[0], f"... {len(lines) - 2} more", lines[-1]]


def _step(step: Step) -> Iterator[str]:
    yield f"    {step.function}: {step.reason}" + (f": {step.message}" if step.message else "")
    yield from (f"      {line}" for line in step.writes)

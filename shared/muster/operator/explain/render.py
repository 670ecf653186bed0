"""Print an explanation as text, or return it as plain data for `muster explain -o json`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from muster.operator.explain.explanation import Explanation, Now, StepPreview
from muster.operator.explain.facts import Facts
from muster.policy.group_labels import SINGLE
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.tree.groups import Group

Data = dict[str, Any]

NAMES_SHOWN = 4
"""Up to so many PodGroups of a template are listed by name; of more only the first and the last."""


def as_text(explained: Explanation | Facts) -> str:
    """Return the explanation in lines: policy, groups, steps, labels to add, warnings."""
    lines = _fact_lines(explained) if isinstance(explained, Facts) else _text_lines(explained)
    return "\n".join(lines) + "\n"


def _fact_lines(facts: Facts) -> Iterator[str]:
    yield str(facts.subject)
    yield from (f"  {line}" for line in facts.lines)


def _text_lines(explanation: Explanation) -> Iterator[str]:
    yield str(explanation.owner)
    yield f"  policy: {explanation.policy}"
    for source in explanation.policy_sources[1:]:
        yield f"          (not used: {source.where})"
    if explanation.locked:
        yield f"  locked: {explanation.locked}"
    yield from _tree_lines(explanation)
    yield from _now_lines(explanation.now)
    yield "  steps:"
    for step in explanation.steps:
        yield from _step_lines(step)
    if explanation.labels:
        yield "  labels to add or change in the job's manifest:"
        yield from (f"    {path}: {label}: {value}" for path, label, value in explanation.labels)
    yield from (f"  warning: {warning}" for warning in explanation.warnings)
    yield from (f"  note: {note}" for note in explanation.notes)


def _tree_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the groups, or why there are none."""
    if explanation.skipped is not None:
        yield f"  not grouped: {explanation.skipped.reason}: {explanation.skipped.message}"
    if explanation.failure is not None:
        yield f"  cannot be made: {explanation.failure.reason}: {explanation.failure.message}"
        yield f"  {_instead(explanation)}"
    elif explanation.tree:
        yield "  groups:"
    if explanation.pod_sets is not None:
        for root in explanation.tree:
            yield from _text_tree(root, explanation.pod_sets, "    ", "    ")


def _instead(explanation: Explanation) -> str:
    """Return what becomes of the pods of groups that cannot be made."""
    if explanation.held:
        return "its pods keep their gate until its groups can be made (onFailure: Hold); by its labels alone:"
    names = "of the same names" if explanation.tree else "for the existing pods"
    return f"instead of these groups, fallback PodGroups {names}, in which the pods run one by one:"


def _now_lines(present: Sequence[Now]) -> Iterator[str]:
    if present:
        yield "  now:"
    for now in present:
        since = f" since {now.since}" if now.since else ""
        yield "    " + ": ".join(filter(None, (now.about, f"{now.reason}{since}", now.message)))


def _text_tree(group: Group, pod_sets: OwnerPodSets, prefix: str, indent: str) -> Iterator[str]:
    yield f"{prefix}{group.name}: {_describe(group)}"
    yield from (f"{indent}  {line}" for line in _object_names(group, pod_sets))
    for index, child in enumerate(group.children):
        last = index == len(group.children) - 1
        yield from _text_tree(
            child, pod_sets, f"{indent}{'└─ ' if last else '├─ '}", f"{indent}{'   ' if last else '│  '}"
        )


def _step_lines(step: StepPreview) -> Iterator[str]:
    yield f"    {step.function}: {step.reason}" + (f": {step.message}" if step.message else "")
    yield from (f"      {line}" for line in step.writes)


def _describe(group: Group) -> str:
    """Return the settings of a group as text: `gang of 2 of 3 groups, within one zone`."""
    count = group.child_groups if group.children else max([0, *group.sizes.values()])
    unit = ("group" if group.children else "pod") + ("" if count == 1 else "s")
    size = f"gang of {group.template_min_count}" if group.gang else "basic"
    parts = [f"{size} of {count} {unit}" if group.gang else f"{size}, {count} {unit}"]
    parts += _counted_by(group)
    constraints = group.settings.get("schedulingConstraints") or {}
    parts += [f"within one {topology['key']}" for topology in constraints.get("topology") or []]
    whole = "all" in (group.disruption_mode or {})
    if whole != group.gang:
        parts.append("disrupted as a whole" if whole else "disrupted one by one")
    if "preemptionPolicy" in group.settings:
        parts.append(f"preemption {group.settings['preemptionPolicy']}")
    if "resourceClaims" in group.settings:
        claims = ", ".join(claim["name"] for claim in group.settings["resourceClaims"])
        parts.append(f"shared claims {claims}")
    if group.other_template:
        parts.append(f"template {group.other_template}")
    if group.priority_class_name:
        parts.append(f"priority class {group.priority_class_name}")
    return ", ".join(parts)


def _counted_by(group: Group) -> list[str]:
    """Return `one per Job` or `one per block ...` for a group with several CompositePodGroups, else []."""
    if not group.children or group.shape == SINGLE:
        return []
    blocks = f"block of {group.shape.size} completion indexes" if group.shape.size else ""
    return [f"one per {' of each '.join(filter(None, (blocks, 'Job' if group.shape.per_job else '')))}"]


def _object_names(group: Group, pod_sets: OwnerPodSets) -> list[str]:
    """Return the names of the PodGroups of a group with their pods, or of its CompositePodGroups."""
    lines = (
        [f"CompositePodGroup {pod_sets.pod_group_name(group.name, suffix)}" for suffix in group.instances]
        if group.children
        else [
            f"PodGroup {pod_sets.pod_group_name(group.name, suffix)} ({pods} pod{'' if pods == 1 else 's'})"
            for suffix, pods in group.sizes.items()
        ]
    )
    if len(lines) <= NAMES_SHOWN:
        return lines
    return [lines[0], f"... {len(lines) - 2} more", lines[-1]]


def as_data(explained: Explanation | Facts) -> Data:
    """Return an explanation as plain data; scripts read it: a field may be added, none removed or renamed."""
    if isinstance(explained, Facts):
        return {"object": str(explained.subject), "facts": [_fact(line) for line in explained.lines]}
    failure, skipped = explained.failure, explained.skipped
    pod_sets = explained.pod_sets
    return {
        "object": str(explained.owner),
        "policy": explained.policy,
        "notUsed": [source.where for source in explained.policy_sources[1:]],
        "locked": explained.locked,
        "skipped": skipped and {"reason": str(skipped.reason), "message": skipped.message},
        "failure": failure
        and {"reason": str(failure.reason), "message": failure.message, "held": explained.held},
        "groups": [] if pod_sets is None else [_group(group, pod_sets) for group in explained.tree],
        "now": [
            {
                "about": now.about,
                "status": now.true,
                "reason": now.reason,
                "since": now.since,
                "message": now.message,
            }
            for now in explained.now
        ],
        "steps": list(map(asdict, explained.steps)),
        "labels": [{"path": path, "label": label, "value": value} for path, label, value in explained.labels],
        "warnings": [*explained.warnings],
        "notes": [*explained.notes],
    }


def _fact(line: str) -> Data:
    about, _, text = line.partition(": ")
    return {"about": about, "text": text}


def _group(group: Group, pod_sets: OwnerPodSets) -> Data:
    count = group.template_min_count if group.gang else 0
    data: Data = {"name": group.name, "gang": group.gang, "minCount": count}
    if group.children:
        names = [pod_sets.pod_group_name(group.name, suffix) for suffix in group.instances]
        return {
            **data,
            "compositePodGroups": names,
            "groups": [_group(child, pod_sets) for child in group.children],
        }
    sizes = group.sizes.items()
    members = [{"name": pod_sets.pod_group_name(group.name, suffix), "pods": pods} for suffix, pods in sizes]
    return {**data, "podGroups": members}

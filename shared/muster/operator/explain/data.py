"""An explanation as plain data, for `muster explain -o json`."""

from __future__ import annotations

from typing import Any

from muster.operator.explain.explanation import Explanation
from muster.operator.explain.facts import Facts
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.tree.groups import Group

Data = dict[str, Any]


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
        "steps": [
            {
                "function": step.function,
                "reason": step.reason,
                "message": step.message,
                "writes": [*step.writes],
            }
            for step in explained.steps
        ],
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

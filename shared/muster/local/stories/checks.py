"""The checks of `muster run` on the timeline of a story: the laws of every story, and its expected groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.local.stories import laws
from muster.local.stories.laws import Law
from muster.local.stories.watching import Entry
from muster.policy.group_labels import GROUP
from muster.replay.snapshots import Object
from muster.replay.summary import group_of, is_gated


@dataclass(frozen=True)
class Check:
    """What had to happen, whether it did, and what happened instead."""

    description: str
    passed: bool
    detail: str = ""


Groups = Mapping[str, int]
"""minCount by group; 0 for a basic group."""


def check_timeline(history: Sequence[Entry], groups: Groups) -> list[Check]:
    """Return a check for each of CHECKS on the changes of one story, in their order."""
    checks = []
    for description, (broken_laws, expectations) in CHECKS.items():
        violations = [violation for law in broken_laws for violation in law(history)]
        violations += [found for expectation in expectations for found in expectation(history, groups)]
        checks.append(Check(description, not violations, "; ".join(violations)))
    return checks


def stamped_at_birth(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """Every pod is created with the name of its group and with Muster's gate."""
    created = [entry for entry in history if entry.kind == "Pod" and entry.change == "ADDED"]
    if len(created) < sum(max(1, size) for size in groups.values()):
        yield f"only {len(created)} pods were created"
    for entry in created:
        if not group_of(entry.object) or not is_gated(entry.object):
            yield f"pod {entry.name} was created without group or gate"


def groups_as_asked(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """The Workload and the PodGroups have the groups and minCounts of the story."""
    workloads = [entry.object for entry in _added(history, "Workload")]
    if len(workloads) != 1:
        yield f"{len(workloads)} Workloads"
    for workload in workloads:
        templates = {
            template["name"]: _min_count(template) for template in workload["spec"]["podGroupTemplates"]
        }
        if templates != groups:
            yield f"Workload {workload['metadata']['name']} has {templates}"
    latest = {entry.name: entry.object for entry in history if entry.kind == "PodGroup"}
    made = {
        group["spec"]["workloadRef"]["templateName"]: _min_count(group["spec"]) for group in latest.values()
    }
    if made != groups:
        yield f"the PodGroups are {made}"


def all_bound(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """Every group has all its pods, and all of them are bound."""
    for group, size in groups.items():
        bound = sum(group_label(pod) == group for pod, _ in _bindings(history))
        if bound < max(1, size):
            yield f"{group}: {bound} of {max(1, size)} pods were bound"


def specs_untouched(history: Sequence[Entry], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - an Expectation
    """The spec of the object that the user created does not change."""
    first = next((entry for entry in history if not entry.object["metadata"].get("ownerReferences")), None)
    if first is None:
        yield "no object was seen"
        return
    same = [entry for entry in history if (entry.kind, entry.name) == (first.kind, first.name)]
    if any(entry.object["spec"] != first.object["spec"] for entry in same):
        yield f"the spec of {first.kind} {first.name} changed"


Expectation = Callable[[Sequence[Entry], Groups], Iterator[str]]
"""Yields the violations in a timeline of a story with known groups."""

CHECKS: Mapping[str, tuple[tuple[Law, ...], tuple[Expectation, ...]]] = {
    "every pod was created with its group's name and a gate": ((), (stamped_at_birth,)),
    "Workload and PodGroups have the expected groups and minCounts": ((), (groups_as_asked,)),
    "the Workload came first, then the PodGroups, then the first binding": (
        (laws.workload_group_binding_in_this_order,),
        (),
    ),
    "no gate was removed before the PodGroup existed": (
        (laws.no_gate_is_lifted_before_its_group_exists,),
        (),
    ),
    "every gang was bound together": (
        (
            laws.no_gang_is_bound_before_it_can_be,
            laws.no_gang_stays_partly_bound,
            laws.no_tree_is_bound_before_it_can_be,
        ),
        (all_bound,),
    ),
    "nobody changed the spec of what the user created": ((), (specs_untouched,)),
}
"""The laws and expectations behind each sentence that is shown; each law is in exactly one."""


def group_label(pod: Object) -> str:
    """Return the group label of a pod; "" if it has none."""
    return str((pod["metadata"].get("labels") or {}).get(GROUP, ""))


def _added(history: Sequence[Entry], kind: str) -> list[Entry]:
    return [entry for entry in history if entry.kind == kind and entry.change == "ADDED"]


def _bindings(history: Sequence[Entry]) -> list[tuple[Object, int]]:
    """Return each bound pod and its resourceVersion, as of its first entry with a node."""
    bound: dict[str, tuple[Object, int]] = {}
    for entry in history:
        if entry.kind == "Pod" and entry.object["spec"].get("nodeName"):
            bound.setdefault(entry.name, (entry.object, entry.version))
    return list(bound.values())


def _min_count(group: Object) -> int:
    return int((group["schedulingPolicy"].get("gang") or {}).get("minCount", 0))

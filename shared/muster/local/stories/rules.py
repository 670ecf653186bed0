"""The checks of `muster run` on each story: the laws of every story, and the groups that it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muster.local.stories import laws
from muster.local.stories.laws import Law
from muster.local.stories.watching import Entry
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


def checks(history: Sequence[Entry], groups: Groups) -> list[Check]:
    """Return a check for each sentence, on the changes of one story in their order."""
    return [_check(sentence, history, groups) for sentence in SENTENCES]


def _check(sentence: str, history: Sequence[Entry], groups: Groups) -> Check:
    faults = [fault for law in LAWS.get(sentence, ()) for fault in law(history)]
    faults += [fault for rule in RULES.get(sentence, ()) for fault in rule(history, groups)]
    return Check(sentence, not faults, "; ".join(faults))


def stamped_at_birth(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """No pod is born without the name of its group, or free to go."""
    born = [entry for entry in history if entry.kind == "Pod" and entry.change == "ADDED"]
    if len(born) < sum(max(1, size) for size in groups.values()):
        yield f"only {len(born)} pods were born"
    for entry in born:
        if not outline.group_of(entry.object) or not outline.is_gated(entry.object):
            yield f"pod {entry.name} was born without group or gate"


def groups_as_asked(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """The Workload and the PodGroups have the groups and minCounts of the story."""
    workloads = [entry.object for entry in _added(history, "Workload")]
    if len(workloads) != 1:
        yield f"{len(workloads)} Workloads"
    for workload in workloads:
        templates = {each["name"]: _size(each) for each in workload["spec"]["podGroupTemplates"]}
        if templates != groups:
            yield f"Workload {workload['metadata']['name']} has {templates}"
    latest = {entry.name: entry.object for entry in history if entry.kind == "PodGroup"}
    made = {each["spec"]["workloadRef"]["templateName"]: _size(each["spec"]) for each in latest.values()}
    if made != groups:
        yield f"the PodGroups are {made}"


def all_groups_before_any_binding(history: Sequence[Entry], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    """The PodGroups of all groups exist when the first pod of any of them is bound."""
    made = [entry.version for entry in _added(history, "PodGroup")]
    first_bound = min((version for _, version in _bindings(history)), default=0)
    if not 0 < max(made, default=0) < first_bound:
        yield f"PodGroups {made}, first binding {first_bound}"


def all_bound(history: Sequence[Entry], groups: Groups) -> Iterator[str]:
    """Every group has its pods, and each of them a node."""
    for group, size in groups.items():
        bound = sum(group_label(pod) == group for pod, _ in _bindings(history))
        if bound < max(1, size):
            yield f"{group}: {bound} of {max(1, size)} pods were bound"


def specs_untouched(history: Sequence[Entry], groups: Groups) -> Iterator[str]:  # noqa: ARG001 - likewise
    """Nobody wrote to the spec of what the user created."""
    first = next((entry for entry in history if not entry.object["metadata"].get("ownerReferences")), None)
    if first is None:
        yield "nothing was seen"
        return
    same = [entry for entry in history if (entry.kind, entry.name) == (first.kind, first.name)]
    if any(entry.object["spec"] != first.object["spec"] for entry in same):
        yield f"the spec of {first.kind} {first.name} changed"


Rule = Callable[[Sequence[Entry], Groups], Iterator[str]]

_STAMPED = "every pod was born with its group's name and a gate"
_AS_ASKED = "Workload and PodGroups have the groups and minCounts that were expected"
_IN_ORDER = "the Workload came first, then the PodGroups, then the first binding"
_GATES = "no gate was lifted before the PodGroup existed"
_TOGETHER = "every gang was bound together"
_UNTOUCHED = "nobody changed the spec of what the user created"

SENTENCES = (_STAMPED, _AS_ASKED, _IN_ORDER, _GATES, _TOGETHER, _UNTOUCHED)

LAWS: Mapping[str, tuple[Law, ...]] = {
    _IN_ORDER: (laws.workload_group_binding_in_this_order,),
    _GATES: (laws.no_gate_is_lifted_before_its_group_exists,),
    _TOGETHER: (
        laws.no_gang_is_bound_before_it_can_be,
        laws.no_gang_stays_partly_bound,
        laws.no_tree_is_bound_before_it_can_be,
    ),
}
"""The laws that a sentence stands for; each law is in one of them."""

RULES: Mapping[str, tuple[Rule, ...]] = {
    _STAMPED: (stamped_at_birth,),
    _AS_ASKED: (groups_as_asked,),
    _IN_ORDER: (all_groups_before_any_binding,),
    _TOGETHER: (all_bound,),
    _UNTOUCHED: (specs_untouched,),
}
"""What a sentence stands for beyond the laws, where the groups of the story are known."""


def group_label(pod: Object) -> str:
    """The mark of a pod."""
    return str((pod["metadata"].get("labels") or {}).get(GROUP, ""))


def _added(history: Sequence[Entry], kind: str) -> list[Entry]:
    return [entry for entry in history if entry.kind == kind and entry.change == "ADDED"]


def _bindings(history: Sequence[Entry]) -> list[tuple[Object, int]]:
    """Each pod when it was first seen with a node."""
    bound: dict[str, tuple[Object, int]] = {}
    for entry in history:
        if entry.kind == "Pod" and entry.object["spec"].get("nodeName"):
            bound.setdefault(entry.name, (entry.object, entry.version))
    return list(bound.values())


def _size(holder: Object) -> int:
    return int((holder["schedulingPolicy"].get("gang") or {}).get("minCount", 0))

"""The laws of every story of `muster run` and of the end-to-end tests, checked on its whole timeline.

A law is a pure function that takes a timeline and returns its violations as text, none if it was kept.
tests/unit/local/test_laws.py shows that each of them can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import inf

from muster.local.stories.watching import Entry, apply_entry
from muster.policy.group_labels import GATE
from muster.replay.snapshots import Object
from muster.replay.summary import gates, group_of

BINDING_SECONDS = 5.0
"""How long after its first pod a gang may take to be bound to its minCount; each binding is a write."""


def no_gang_is_bound_before_it_can_be(entries: Sequence[Entry]) -> list[str]:
    """A pod of a gang is bound when at least minCount pods of the gang exist without a gate.

    Or existed five seconds before at most: pods may be deleted after the scheduler placed the gang.
    """
    violations, pods, groups = [], dict[str, Object](), dict[str, Object]()
    last_whole = dict[str, float]()  # by pod: when it was last one of minCount pods without a gate
    for entry in entries:
        if entry.kind == "PodGroup":
            apply_entry(groups, entry)
        if entry.kind != "Pod":
            continue
        was_bound = bool(_node(pods.get(entry.name, {})))
        apply_entry(pods, entry)
        group = group_of(entry.object)
        if entry.change == "DELETED":
            last_whole.pop(entry.name, None)
        if entry.change == "DELETED" or group not in groups:
            continue
        required = min_count(groups[group])
        members = [name for name, pod in pods.items() if group_of(pod) == group and not gates(pod)]
        if len(members) >= required:
            last_whole |= dict.fromkeys(members, entry.at)
        newly_bound = _node(entry.object) and not was_bound
        if newly_bound and entry.at - last_whole.get(entry.name, -inf) >= BINDING_SECONDS:
            violations.append(
                f"{entry.name} was bound when {len(members)} of {required} pods of {group} could be"
            )
    return violations


def no_gang_stays_partly_bound(entries: Sequence[Entry]) -> list[str]:
    """A gang without bound pods is bound to its minCount within five seconds after its first pod."""
    violations = []
    names = {group_of(entry.object) for entry in entries if entry.kind == "Pod"}
    for group in sorted(names - {""}):
        violations += _partly_bound(group, entries)
    return violations


def no_tree_is_bound_before_it_can_be(entries: Sequence[Entry]) -> list[str]:
    """When the first pod below a composite gang is bound, minGroupCount of its groups have their pods.

    A gated pod does not count, nor one that is being deleted, although the scheduler counts the latter.
    """
    violations, pods, groups = [], dict[str, Object](), dict[str, Object]()
    for entry in entries:
        if entry.kind in ("PodGroup", "CompositePodGroup"):
            apply_entry(groups, entry)
        if entry.kind != "Pod":
            continue
        was_bound = bool(_node(pods.get(entry.name, {})))
        apply_entry(pods, entry)
        if was_bound or entry.change == "DELETED" or not _node(entry.object):
            continue
        for ancestor in _ancestors(group_of(entry.object), groups):
            others = [pod for pod in _live_below(ancestor, groups, pods.values()) if pod is not entry.object]
            ready = _ready_below(ancestor, groups, pods.values())
            required = _min_group_count(groups[ancestor])
            if ready < required and not any(map(_node, others)):
                violations.append(
                    f"{entry.name} was bound when {ready} of {required} groups of {ancestor} could be"
                )
    return violations


def workload_group_binding_in_this_order(entries: Sequence[Entry]) -> list[str]:
    """A Workload is created before its PodGroups, and a PodGroup before the first of its pods is bound."""
    violations, workloads, groups, bound = [], set[str](), set[str](), set[str]()
    for entry in entries:
        if entry.kind == "Workload" and entry.change == "ADDED":
            workloads.add(entry.name)
        if entry.kind == "PodGroup" and entry.change == "ADDED":
            groups.add(entry.name)
            workload = workload_of(entry.object)
            if workload and workload not in workloads:
                violations.append(f"PodGroup {entry.name} came before its Workload {workload}")
        if entry.kind == "Pod" and entry.name not in bound and _node(entry.object):
            bound.add(entry.name)
            group = group_of(entry.object)
            if group and group not in groups:
                violations.append(f"{entry.name} was bound before its PodGroup {group} was made")
    return violations


def no_gate_is_lifted_before_its_group_exists(entries: Sequence[Entry]) -> list[str]:
    """Muster's gate is removed from a pod only after the PodGroup in its schedulingGroup exists."""
    violations, groups, gated = [], set[str](), set[str]()
    for entry in entries:
        if entry.kind == "PodGroup":
            groups.add(entry.name)
        if entry.kind != "Pod" or entry.change == "DELETED":
            continue
        if GATE in gates(entry.object):
            gated.add(entry.name)
        elif entry.name in gated:
            gated.remove(entry.name)
            group = group_of(entry.object)
            if group and group not in groups:
                violations.append(f"the gate of {entry.name} was removed before {group} was made")
    return violations


Law = Callable[[Sequence[Entry]], list[str]]

LAWS: tuple[Law, ...] = (
    no_gang_is_bound_before_it_can_be,
    no_gang_stays_partly_bound,
    no_tree_is_bound_before_it_can_be,
    workload_group_binding_in_this_order,
    no_gate_is_lifted_before_its_group_exists,
)


def min_count(group: Object | None) -> int:
    """Return the minCount of a PodGroup; 1 for a basic group, and for a group that does not exist."""
    policy = (group or {}).get("spec", {}).get("schedulingPolicy", {})
    count: int = (policy.get("gang") or {}).get("minCount", 1)
    return count


def workload_of(group: Object) -> str:
    """Return the name of the Workload of a PodGroup, in either API version; "" for a standalone group."""
    spec = group["spec"]
    v1alpha2 = (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    name: str = (spec.get("workloadRef") or v1alpha2).get("workloadName", "")
    return name


def _partly_bound(group: str, entries: Sequence[Entry]) -> list[str]:
    podgroup: Object | None = None
    bound: set[str] = set()
    since: float | None = None
    violations = []
    for entry in entries:
        if entry.kind == "PodGroup" and entry.name == group:
            podgroup = entry.object
        if entry.kind != "Pod" or group_of(entry.object) != group:
            continue
        if since is not None and len(bound) < min_count(podgroup) and entry.at > since + BINDING_SECONDS:
            violations.append(_message(group, bound, podgroup))
            since = None
        was_empty = not bound
        if entry.change == "DELETED":
            bound.discard(entry.name)
        elif _node(entry.object):
            bound.add(entry.name)
        if bound and was_empty:
            since = entry.at
        if not bound or len(bound) >= min_count(podgroup):
            since = None
    if since is not None:
        violations.append(_message(group, bound, podgroup))
    return violations


def _message(group: str, bound: set[str], podgroup: Object | None) -> str:
    return f"{group}: only {len(bound)} of {min_count(podgroup)} were bound: {', '.join(sorted(bound))}"


def _ancestors(group: str, groups: Mapping[str, Object]) -> Iterator[str]:
    """Yield the existing CompositePodGroups above a group, the nearest first."""
    while group in groups:
        group = groups[group]["spec"].get("parentCompositePodGroupName", "")
        if group in groups:
            yield group


def _live_below(name: str, groups: Mapping[str, Object], pods: Iterable[Object]) -> list[Object]:
    """Return the pods of a group and of all groups below it that are neither finished nor being deleted."""
    return [
        pod
        for pod in pods
        if name in (group_of(pod), *_ancestors(group_of(pod), groups))
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def _ready_below(name: str, groups: Mapping[str, Object], pods: Collection[Object]) -> int:
    """Return how many children of a CompositePodGroup have minCount ungated pods, or minGroupCount groups."""
    children = (
        child for child, body in groups.items() if body["spec"].get("parentCompositePodGroupName") == name
    )
    return sum(_is_ready(child, groups, pods) for child in children)


def _is_ready(name: str, groups: Mapping[str, Object], pods: Collection[Object]) -> bool:
    if groups[name]["kind"] == "CompositePodGroup":
        return _ready_below(name, groups, pods) >= _min_group_count(groups[name])
    ungated = [pod for pod in _live_below(name, groups, pods) if not gates(pod)]
    return len(ungated) >= min_count(groups[name])


def _min_group_count(composite: Object) -> int:
    gang = composite["spec"]["schedulingPolicy"].get("gang") or {}
    count: int = gang.get("minGroupCount", 1)
    return count


def _node(pod: Object) -> str:
    name: str = pod.get("spec", {}).get("nodeName", "")
    return name

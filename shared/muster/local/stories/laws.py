"""The laws of every story, of `muster run` as of the real control plane, from its first moment to its last.

Each law takes a timeline and returns its breaches as sentences; none means that it held. They are pure, and
tests/unit/local/test_laws.py shows each of them to fail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from muster.local.stories.watching import Entry, remember
from muster.policy.marks import GATE
from muster.replay.snapshots import Object
from muster.replay.summary import gates, group_of

BINDING_SECONDS = 5.0
"""How long the rest of a gang may be on its way after its first pod was bound: one write each."""


def no_gang_is_bound_before_it_can_be(entries: Sequence[Entry]) -> list[str]:
    """When the first pod of a gang is bound, minCount of its pods are there and none of those is gated."""
    breaches, pods, groups = [], dict[str, Object](), dict[str, Object]()
    for entry in entries:
        if entry.kind == "PodGroup":
            remember(groups, entry)
        if entry.kind != "Pod":
            continue
        before = pods.get(entry.name, {})
        remember(pods, entry)
        group = group_of(entry.object)
        if not group or _node(before) or not _node(entry.object) or entry.change == "DELETED":
            continue
        wanted = min_count(groups.get(group))
        members = [pod for pod in pods.values() if group_of(pod) == group and not gates(pod)]
        if len(members) < wanted:
            breaches.append(
                f"{entry.name} was bound when {len(members)} of {wanted} pods of {group} could be"
            )
    return breaches


def no_gang_stays_partly_bound(entries: Sequence[Entry]) -> list[str]:
    """A gang of which nothing was bound is soon bound to its minCount once its first pod is."""
    breaches = []
    named = {group_of(entry.object) for entry in entries if entry.kind == "Pod"}
    for group in sorted(named - {""}):
        breaches += _partly_bound(group, entries)
    return breaches


def no_tree_is_bound_before_it_can_be(entries: Sequence[Entry]) -> list[str]:
    """When the first pod below a composite gang is bound, minGroupCount of its groups have their pods.

    A pod that is on its way out is none of them, though the scheduler counts it, and neither is a gated one.
    """
    breaches, pods, groups = [], dict[str, Object](), dict[str, Object]()
    for entry in entries:
        if entry.kind in ("PodGroup", "CompositePodGroup"):
            remember(groups, entry)
        if entry.kind != "Pod":
            continue
        was_bound = bool(_node(pods.get(entry.name, {})))
        remember(pods, entry)
        if was_bound or entry.change == "DELETED" or not _node(entry.object):
            continue
        for above in _above(group_of(entry.object), groups):
            others = [pod for pod in _live_below(above, groups, pods.values()) if pod is not entry.object]
            ready, wanted = _ready_below(above, groups, pods.values()), _min_group_count(groups[above])
            if ready < wanted and not any(map(_node, others)):
                breaches.append(f"{entry.name} was bound when {ready} of {wanted} groups of {above} could be")
    return breaches


def workload_group_binding_in_this_order(entries: Sequence[Entry]) -> list[str]:
    """A Workload is made before its PodGroups, and a PodGroup before the first of its pods is bound."""
    breaches, workloads, groups, bound = [], set[str](), set[str](), set[str]()
    for entry in entries:
        if entry.kind == "Workload" and entry.change == "ADDED":
            workloads.add(entry.name)
        if entry.kind == "PodGroup" and entry.change == "ADDED":
            groups.add(entry.name)
            workload = workload_of(entry.object)
            if workload and workload not in workloads:
                breaches.append(f"PodGroup {entry.name} came before its Workload {workload}")
        if entry.kind == "Pod" and entry.name not in bound and _node(entry.object):
            bound.add(entry.name)
            group = group_of(entry.object)
            if group and group not in groups:
                breaches.append(f"{entry.name} was bound before its PodGroup {group} was made")
    return breaches


def no_gate_is_lifted_before_its_group_exists(entries: Sequence[Entry]) -> list[str]:
    """Muster's gate goes from a pod only when the PodGroup that the pod names exists."""
    breaches, groups, gated = [], set[str](), set[str]()
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
                breaches.append(f"the gate of {entry.name} was lifted before {group} was made")
    return breaches


Law = Callable[[Sequence[Entry]], list[str]]

LAWS: tuple[Law, ...] = (
    no_gang_is_bound_before_it_can_be,
    no_gang_stays_partly_bound,
    no_tree_is_bound_before_it_can_be,
    workload_group_binding_in_this_order,
    no_gate_is_lifted_before_its_group_exists,
)


def min_count(group: Object | None) -> int:
    """Return how many pods a PodGroup needs at once; 1 for a basic one and for one that does not exist."""
    policy = (group or {}).get("spec", {}).get("schedulingPolicy", {})
    count: int = (policy.get("gang") or {}).get("minCount", 1)
    return count


def workload_of(group: Object) -> str:
    """Return the Workload that a PodGroup names, in either API version; empty for a standalone one."""
    spec = group["spec"]
    old = (spec.get("podGroupTemplateRef") or {}).get("workload") or {}
    name: str = (spec.get("workloadRef") or old).get("workloadName", "")
    return name


def _partly_bound(group: str, entries: Sequence[Entry]) -> list[str]:
    podgroup: Object | None = None
    bound: set[str] = set()
    since: float | None = None
    breaches = []
    for entry in entries:
        if entry.kind == "PodGroup" and entry.name == group:
            podgroup = entry.object
        if entry.kind != "Pod" or group_of(entry.object) != group:
            continue
        if since is not None and len(bound) < min_count(podgroup) and entry.at > since + BINDING_SECONDS:
            breaches.append(_partly(group, bound, podgroup))
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
        breaches.append(_partly(group, bound, podgroup))
    return breaches


def _partly(group: str, bound: set[str], podgroup: Object | None) -> str:
    return f"{group}: only {len(bound)} of {min_count(podgroup)} were bound: {', '.join(sorted(bound))}"


def _above(group: str, groups: Mapping[str, Object]) -> Iterator[str]:
    """The CompositePodGroups over a group that exist, from below."""
    while group in groups:
        group = groups[group]["spec"].get("parentCompositePodGroupName", "")
        if group in groups:
            yield group


def _live_below(name: str, groups: Mapping[str, Object], pods: Iterable[Object]) -> list[Object]:
    """The pods of a group, or of all groups below it, that are to run."""
    return [
        pod
        for pod in pods
        if name in (group_of(pod), *_above(group_of(pod), groups))
        and "deletionTimestamp" not in pod["metadata"]
        and pod["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def _ready_below(name: str, groups: Mapping[str, Object], pods: Collection[Object]) -> int:
    """How many child groups of a CompositePodGroup have the pods, or the groups, that they need."""
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

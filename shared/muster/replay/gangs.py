"""The gangs of a cluster as people look at them: each owner's groups, pods and nodes, and why it waits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from muster.objects.meta import KubernetesObject, ObjectRef, find_condition, is_true
from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, WORKLOADS
from muster.objects.scheduling import (
    PLACED,
    CompositePodGroup,
    CompositePodGroupTemplate,
    PodGroup,
    PodGroupSpec,
    Workload,
)
from muster.policy.group_labels import (
    GATE,
    MANAGED_BY,
    MUSTER,
    OWNER_UID,
    completion_index,
    is_gathered,
    job_index,
    read_group_labels,
)
from muster.policy.groups.gathered import maker, why_held
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import KINDS
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.status.conditions import READY, SCHEDULED, Condition, stored_condition, why_given_up
from muster.policy.status.group_status import refusal_of_pod, with_shortfall
from muster.replay.snapshots import Object

KINDS_OF_GANGS = (*(kind.resource for kind in KINDS), WORKLOADS, COMPOSITE_POD_GROUPS, POD_GROUPS, PODS)
"""What gangs are made of."""

_REFUSALS = frozenset({Reason.UNSCHEDULABLE, Reason.SCHEDULER_ERROR, Reason.SCHEDULING_TIMED_OUT})
_WAITS = frozenset({Reason.SCHEDULING_GATED, *(one for one in Reason if one.startswith("WaitingFor"))})


class GangState(StrEnum):
    """How a gang or one of its groups is, the worst first."""

    REFUSED = "Refused"
    NO_GANG = "NoGang"
    WAITING = "Waiting"
    PLACED = "Placed"
    FINISHED = "Finished"


class Told(NamedTuple):
    """The state of a gang or group, why, and since when (RFC 3339; "" if unknown)."""

    state: GangState
    reason: str
    message: str = ""
    since: str = ""


@dataclass(frozen=True)
class GroupOverview:
    """A PodGroup, also one that is still to be created; or a CompositePodGroup, whose members are PodGroups.

    Attributes:
        template: its name in the Workload; its own name if it has none.
        policy: `gang`, `basic` or `composite`.
        parent: the name of the CompositePodGroup above it; "" for none.
        needed: the minCount of a gang; else the number of its pods, at least 1.
        members: its pods that have not failed.
        bound: those of them that have a node.
        gated: those of them that have Muster's gate.
        nodes: the number of bound pods by node.
    """

    name: str
    template: str
    policy: str
    parent: str
    needed: int
    members: int
    bound: int
    gated: int
    nodes: Mapping[str, int]
    told: Told

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: value for name, value in vars(self).items() if name != "told"} | self.told._asdict()


@dataclass(frozen=True)
class GangOverview:
    """An owner with its groups: a TrainJob, JobSet or Job, whatever else owns PodGroups, or a PodGroup alone.

    Attributes:
        created: RFC 3339; "" if the owner is not known.
        groups: its PodGroups, also those that only pods or the Workload name.
        above: its CompositePodGroups.
    """

    owner: ObjectRef
    created: str
    workload: str
    groups: tuple[GroupOverview, ...]
    above: tuple[GroupOverview, ...]
    told: Told

    @property
    def what(self) -> str:
        """The owner as kubectl takes it: `job/llama`."""
        return f"{self.owner.kind.lower()}/{self.owner.name}"

    def as_data(self) -> dict[str, Any]:
        """Return it as plain data, as `muster get -o json` prints it and the page reads it."""
        groups = self.groups
        return {
            "namespace": self.owner.namespace,
            "what": self.what,
            "apiVersion": self.owner.api_version,
            "created": self.created,
            **self.told._asdict(),
            "groups": {"placed": sum(one.bound >= one.needed for one in groups), "wanted": len(groups)},
            "pods": {"bound": sum(one.bound for one in groups), "needed": sum(one.needed for one in groups)},
            "nodes": dict(sorted(sum((Counter(one.nodes) for one in groups), Counter()).items())),
            "workload": self.workload,
            "podGroups": [one.as_data() for one in groups],
            "compositePodGroups": [one.as_data() for one in self.above],
        }


def gangs_of(objects: Iterable[Object]) -> list[GangOverview]:
    """Return the gangs of a cluster by namespace and name; other kinds than KINDS_OF_GANGS do not matter."""
    views: defaultdict[str, list[KubernetesObject]] = defaultdict(list)
    for view in filter(None, map(read_view, objects)):
        views[view.metadata.namespace].append(view)
    return [gang for _, of_one in sorted(views.items()) for gang in NamespaceGangs(of_one).gangs()]


_VIEWS: dict[tuple[str, str], type[KubernetesObject]] = {
    **{(kind.resource.group, kind.resource.kind): kind.view for kind in KINDS},
    (WORKLOADS.group, WORKLOADS.kind): Workload,
    (COMPOSITE_POD_GROUPS.group, COMPOSITE_POD_GROUPS.kind): CompositePodGroup,
    (POD_GROUPS.group, POD_GROUPS.kind): PodGroup,
    (PODS.group, PODS.kind): Pod,
}


def read_view(body: Object) -> KubernetesObject | None:
    """Return the view of an object; None if its kind is not one of KINDS_OF_GANGS."""
    view = _VIEWS.get((body["apiVersion"].rpartition("/")[0], body["kind"]))
    return None if view is None else view.read(body)


class NamespaceGangs:
    """The gangs of one namespace, from the views of its objects."""

    def __init__(self, views: Iterable[KubernetesObject]) -> None:
        self._objects = {(view.kind, view.metadata.name): view for view in views}
        self._uids = {view.metadata.uid: view for view in self._objects.values()}
        self._pods: defaultdict[str, list[Pod]] = defaultdict(list)
        self._views: defaultdict[ObjectRef, list[KubernetesObject]] = defaultdict(list)
        self._missing: defaultdict[ObjectRef, list[str]] = defaultdict(list)
        for _, view in sorted(self._objects.items()):
            if not isinstance(view, Pod):
                self._views[self.root_of(view)].append(view)
            elif view.pod_group_name:
                self._pods[view.pod_group_name].append(view)
        for name, pods in self._pods.items():
            if (POD_GROUPS.kind, name) not in self._objects:
                self._missing[self.root_of(pods[0])].append(name)

    def gangs(self) -> Iterator[GangOverview]:
        """Yield the gangs by the name of their owner."""
        roots = dict.fromkeys([*self._views, *self._missing])
        return filter(None, map(self._gang, sorted(roots, key=lambda root: (root.name, root.kind))))

    def root_of(self, view: KubernetesObject) -> ObjectRef:
        """Return the owner at the top: by the label of what Muster made, ownerReferences, or Workload."""
        meta = view.metadata
        if isinstance(view, PodGroup) and is_gathered(meta.labels):
            return replace(maker(view, self._pods[meta.name]) or view.ref, uid="")
        owner = self._uids.get(meta.labels.get(OWNER_UID, ""))
        named = meta.controller or next(iter(meta.owner_references), None)
        if owner is None and named is not None:
            owner = self._uids.get(named.uid)
            if owner is None:
                return ObjectRef(named.api_version, named.kind, meta.namespace, named.name)
        if owner is None and isinstance(view, PodGroup | CompositePodGroup) and view.spec.workload_ref:
            owner = self._objects.get((WORKLOADS.kind, view.spec.workload_ref.workload_name))
        if owner is None and isinstance(view, Workload):
            owner = self._objects.get((view.spec.controller_ref.kind, view.spec.controller_ref.name))
        return replace(view.ref, uid="") if owner in (None, view) else self.root_of(owner)

    def _gang(self, root: ObjectRef) -> GangOverview | None:
        """Return a gang; None for an owner without groups and conditions of Muster's."""
        views, owner = self._views[root], self._objects.get((root.kind, root.name))
        groups = [
            self._group(view.metadata.name, view)
            for view in views
            if isinstance(view, PodGroup) and (_is_managed(view) or self._pods[view.metadata.name])
        ]
        groups += [self._group(name) for name in self._missing[root]]
        workloads = [view for view in views if isinstance(view, Workload) and (groups or _is_managed(view))]
        templates = {group.template for group in groups}
        groups += [
            self._group(leaf.name, minimum=leaf.scheduling_policy.min_count)
            for workload in workloads
            for leaf, _ in workload.hierarchy()
            if not isinstance(leaf, CompositePodGroupTemplate) and leaf.name not in templates
        ]
        told = _told_by_owner(owner, groups) if isinstance(owner, OwnerObject) else None
        if told is None and not groups:
            return None
        return GangOverview(
            owner=root,
            created=owner.metadata.creation_timestamp if owner else "",
            workload=workloads[0].metadata.name if workloads else "",
            groups=tuple(groups),
            above=tuple(_composite(view, groups) for view in views if isinstance(view, CompositePodGroup)),
            told=told or _worst(groups),
        )

    def _group(self, name: str, group: PodGroup | None = None, minimum: int = 0) -> GroupOverview:
        """Return a PodGroup, or one of that name, or of a template of that name, which does not exist."""
        pods = [pod for pod in self._pods[name] if pod.status.phase != "Failed" and not pod.being_deleted]
        spec = group.spec if group else PodGroupSpec()
        nodes = Counter(pod.spec.node_name for pod in pods if pod.bound)
        labels = read_group_labels(pods[0].metadata.labels) if pods else None
        template = spec.workload_ref.template_name if spec.workload_ref else name
        if labels is not None and group is None:
            of_pod = pods[0].metadata.labels
            template = labels.instance(job_index(of_pod), completion_index(of_pod)).group
        needed = spec.scheduling_policy.min_count or minimum or max(1, len(pods))
        return GroupOverview(
            name=name,
            template=template,
            policy="basic" if group and spec.scheduling_policy.gang is None else "gang",
            parent=spec.parent,
            needed=needed,
            members=len(pods),
            bound=nodes.total(),
            gated=sum(GATE in pod.gates for pod in pods),
            nodes=nodes,
            told=_told_by_group(group, pods, needed),
        )


def _is_managed(view: KubernetesObject) -> bool:
    return view.metadata.labels.get(MANAGED_BY) == MUSTER


def _composite(view: CompositePodGroup, groups: Sequence[GroupOverview]) -> GroupOverview:
    children = [group for group in groups if group.parent == view.metadata.name]
    placed = sum(child.told.state == GangState.PLACED for child in children)
    return GroupOverview(
        name=view.metadata.name,
        template=view.spec.workload_ref.template_name if view.spec.workload_ref else view.metadata.name,
        policy="composite",
        parent=view.spec.parent,
        needed=view.spec.scheduling_policy.needs,
        members=len(children),
        bound=placed,
        gated=0,
        nodes={},
        told=_worst(children),
    )


def _worst(groups: Sequence[GroupOverview]) -> Told:
    order = list(GangState)
    told = (group.told for group in groups)
    return min(told, key=lambda one: order.index(one.state), default=Told(GangState.WAITING, ""))


def _told_by_group(group: PodGroup | None, pods: Sequence[Pod], needed: int) -> Told:
    """Return the state of a group from the scheduler's words about it and its pods."""
    if group is None:
        return Told(GangState.WAITING, Reason.WAITING_FOR_POD_GROUP)
    since = (find_condition(group.status.conditions, PLACED) or {}).get("lastTransitionTime") or ""
    fallback = group.metadata.annotations.get(FALLBACK)
    if fallback is not None:
        reason, _, message = fallback.partition(": ")
        return Told(GangState.NO_GANG, reason, message, group.metadata.creation_timestamp)
    if sum(pod.bound for pod in pods) >= needed:
        return Told(GangState.PLACED, Reason.SCHEDULED, "", since)
    if group.refusal is not None:
        reason, message = group.refusal
        return Told(GangState.REFUSED, reason, with_shortfall(message, pods), since)
    for refusal in filter(None, map(refusal_of_pod, pods)):
        return Told(GangState.REFUSED, refusal.reason, refusal.message)
    held = why_held(group, pods) if is_gathered(group.metadata.labels) else None
    if held is not None:
        return Told(GangState.WAITING, held.reason, held.message)
    if any(GATE in pod.gates for pod in pods):
        return Told(GangState.WAITING, Reason.SCHEDULING_GATED)
    few = len(pods) < needed
    return Told(GangState.WAITING, Reason.WAITING_FOR_PODS if few else Reason.WAITING_FOR_SCHEDULER)


def _told_by_owner(owner: OwnerObject, groups: Sequence[GroupOverview]) -> Told | None:
    """Return the state of a gang from the conditions of its owner; None if it has none of Muster's.

    A refusal in it is over once all pods are bound: emit_conditions says so a moment later.
    """
    ready, scheduled = (stored_condition(owner, name) for name in (READY, SCHEDULED))
    if not (ready or scheduled):
        return None
    conditions = owner.status.conditions
    ended = [one for one in conditions if is_true([one], *owner.terminal_conditions)]
    not_ready = ready.get("status") == "False"
    condition = ended[0] if ended else ready if not_ready else scheduled
    reason, message, since = (
        str(condition.get(name) or "") for name in ("reason", "message", "lastTransitionTime")
    )
    if ended:
        return Told(GangState.FINISHED, condition["type"], message, since)
    if condition.get("status") == "True":
        return Told(GangState.PLACED, reason, message, since)
    if not_ready and why_given_up(Condition(READY, true=False, reason=reason, message=message)):
        return Told(GangState.NO_GANG, reason, message, since)
    if reason in _REFUSALS | _WAITS and all(group.bound >= group.needed for group in groups):
        return Told(GangState.PLACED, Reason.SCHEDULED)
    return Told(GangState.REFUSED if reason in _REFUSALS else GangState.WAITING, reason, message, since)

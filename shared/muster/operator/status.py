"""List the owners, groups and pods of Muster that wait in a cluster, or run without a gang, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import Cluster, Objects
from muster.objects.meta import find_condition
from muster.objects.pods import Pod
from muster.objects.resources import POD_GROUPS, PODS, Resource
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE, GROUP, MANAGED_BY, MUSTER
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import KINDS, runs_as
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.reasons import Reason
from muster.policy.status.conditions import READY, SCHEDULED

_TYPES = (READY, SCHEDULED)
# The messages that are searched are written by the function emit_conditions, which names PodGroups and pods.
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
"""A DNS subdomain in a condition message, which may be the name of an object."""


class State(StrEnum):
    """Whether something waits, or runs in another way than as a gang."""

    WAITING = "Waiting"
    NO_GANG = "NoGang"


@dataclass(frozen=True)
class Item:
    """An owner, group or pod that waits or runs without a gang; `muster status -o json` prints these fields.

    Attributes:
        namespace: of the object.
        what: the object, as `job/llama`.
        state: whether its pods wait, or run one by one.
        since: RFC 3339; "" if unknown.
        reason: a `muster.policy.reasons.Reason`, or the scheduler's; "" if unknown.
        message: the message of the condition, or what it waits for.
    """

    namespace: str
    what: str
    state: State
    since: str
    reason: str
    message: str

    @property
    def name(self) -> str:
        """`llama` of `job/llama`."""
        return self.what.partition("/")[2]


@dataclass
class ClusterStatus:
    """What waits or runs without a gang, oldest first, and why which kinds could not be listed."""

    items: list[Item] = field(default_factory=list)
    not_read: dict[str, str] = field(default_factory=dict)


def read_status(cluster: Cluster, namespace: str = "") -> ClusterStatus:
    """Return what waits or runs without a gang; "" means all namespaces.

    A group or pod is only listed if no owner of all its pods names it in a condition message: before
    emit_conditions has written conditions, for example, or after the owner was deleted.

    Raises:
        ClusterError: the API server does not answer.
    """
    status = ClusterStatus()

    def listed(resource: Resource, *, labels: str = "", fields: str = "") -> Objects:
        try:
            return cluster.list(resource, namespace, labels=labels, fields=fields)
        except Forbidden as error:
            status.not_read[resource.plural] = error.message
        except ApiGone:  # TrainJobs and JobSets need not be installed
            pass
        return []

    marked = map(Pod.read, listed(PODS, labels=GROUP))
    unmarked = map(Pod.read, listed(PODS, labels=f"!{GROUP}", fields="spec.nodeName="))
    pods = _Pods([*marked, *(pod for pod in unmarked if GATE in pod.gates)])
    for kind in KINDS:
        owners = [kind.view.read(body) for body in listed(kind.resource)]
        status.items += _of_owners(kind, owners, pods)
    groups = [PodGroup.read(body) for body in listed(POD_GROUPS)]
    existing = {(group.metadata.namespace, group.metadata.name) for group in groups}
    items = [*filter(None, (_of_group(group, pods) for group in groups)), *_of_pods(pods, existing)]
    status.items += [item for item in items if (item.namespace, item.name) not in pods.named]
    status.items.sort(key=attrgetter("namespace", "since", "what", "reason"))
    return status


class _Pods:
    """The pods that are still to end.

    Attributes:
        of_group: by namespace and name of the PodGroup; "" for pods without one.
        of_owner: by namespace, and label and value by which the pods of the owner are found.
        named: namespaces and names of the groups and pods that a condition of the owner of all their pods
            names.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.of_group: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        self.of_owner: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        self.named: set[tuple[str, str]] = set()
        for pod in pods:
            if pod.finished or pod.being_deleted:
                continue
            namespace = pod.metadata.namespace
            self.of_group[namespace, pod.pod_group_name].append(pod)
            for kind in KINDS:
                label = runs_as(kind).pod_label
                if label in pod.metadata.labels:
                    self.of_owner[namespace, label, pod.metadata.labels[label]].append(pod)

    def note_names(self, item: Item, label: str) -> None:
        """Note the groups and pods that the condition of an owner names."""
        for name in _NAME.findall(item.message):
            members = self.of_group.get((item.namespace, name))
            if members is None:
                alone = self.of_group.get((item.namespace, ""), [])
                members = alone if any(pod.metadata.name == name for pod in alone) else []
            if members and all(pod.metadata.labels.get(label) == item.name for pod in members):
                self.named.add((item.namespace, name))


def _run(pods: Sequence[Pod]) -> bool:
    return bool(pods) and all(pod.bound for pod in pods)


def _of_owners(kind: OwnerKind, owners: Iterable[OwnerObject], pods: _Pods) -> Iterator[Item]:
    """Yield the conditions of Muster with status False of the owners that are still to run."""
    label = runs_as(kind).pod_label
    for owner in owners:
        if owner.finished or owner.being_deleted:
            continue
        metadata = owner.metadata
        found = [find_condition(owner.status.conditions, f"{kind.condition_prefix}{name}") for name in _TYPES]
        ready, scheduled = (one if one and one.get("status") == "False" else None for one in found)
        run = _run(pods.of_owner[metadata.namespace, label, metadata.name])
        state = State.NO_GANG if run and ready else State.WAITING
        if ready and scheduled and ready.get("reason") == scheduled.get("reason"):
            ready = None
        for condition in filter(None, (ready, scheduled)):
            texts = (condition.get(name) or "" for name in ("lastTransitionTime", "reason", "message"))
            what = f"{kind.resource.kind.lower()}/{metadata.name}"
            item = Item(metadata.namespace, what, state, *texts)
            pods.note_names(item, label)
            yield item


def _of_group(group: PodGroup, pods: _Pods) -> Item | None:
    """Return the entry of a basic group in place of a failed policy, or of a group that has no room."""
    metadata = group.metadata
    what, fallback = f"podgroup/{metadata.name}", metadata.annotations.get(FALLBACK)
    if fallback is not None:
        run = _run(pods.of_group[metadata.namespace, metadata.name])
        state = State.NO_GANG if run else State.WAITING
        reason, _, message = fallback.partition(": ")
        message = f"a fallback PodGroup, no gang: {message}"
        return Item(metadata.namespace, what, state, metadata.creation_timestamp, reason, message)
    if metadata.labels.get(MANAGED_BY) == MUSTER and group.refusal is not None:
        condition = find_condition(group.status.conditions, GROUP_PLACED) or {}
        since = condition.get("lastTransitionTime") or ""
        return Item(metadata.namespace, what, State.WAITING, since, *group.refusal)
    return None


def _of_pods(pods: _Pods, existing: set[tuple[str, str]]) -> Iterator[Item]:
    """Yield an entry per group whose pods have Muster's gate, or whose PodGroup does not exist."""
    for (namespace, group), members in pods.of_group.items():
        orphaned = bool(group) and (namespace, group) not in existing
        waiting = [pod for pod in members if not pod.bound and (GATE in pod.gates or orphaned)]
        if not waiting:
            continue
        oldest = min((pod.metadata for pod in waiting), key=attrgetter("creation_timestamp", "name"))
        what, reason = f"podgroup/{group}", Reason.SCHEDULING_GATED
        message = f"{len(waiting)} pod{'' if len(waiting) == 1 else 's'}"
        if not group:
            what, reason = f"pod/{oldest.name}", Reason.API_NOT_SERVED
            message += " with Muster's gate and no group: the API server dropped the field schedulingGroup"
        elif orphaned:
            reason = Reason.WAITING_FOR_POD_GROUP
            message += " of a PodGroup that does not exist"
        else:
            message += " with Muster's gate"
        yield Item(namespace, what, State.WAITING, oldest.creation_timestamp, reason, message)

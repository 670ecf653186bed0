"""What of Muster's waits in a cluster: owners, groups and pods, since when and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.cluster.observe import list_if_served
from muster.cluster.port import Cluster, Object
from muster.objects.jobs import Job, JobSet, Pod, TrainJob
from muster.objects.meta import find_condition
from muster.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, TRAINJOBS, Resource
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.policy import bodies, marks
from muster.policy.reasons import Reason
from muster.policy.status import JOB_PREFIX, PLACED, READY

_OWNERS: tuple[tuple[Resource, type[TrainJob | JobSet | Job]], ...] = (
    (TRAINJOBS, TrainJob),
    (JOBSETS, JobSet),
    (JOBS, Job),
)
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
"""What may be the name of an object in a message."""


@dataclass(frozen=True)
class Waiting:
    """One thing that is not as it should be yet.

    Attributes:
        namespace: where.
        what: `job/llama`.
        since: RFC 3339; empty where nobody wrote it down.
        reason: a `muster.policy.reasons.Reason`, or the scheduler's.
        message: the same in words.
    """

    namespace: str
    what: str
    since: str
    reason: str
    message: str

    @property
    def name(self) -> str:
        """`llama` of `job/llama`."""
        return self.what.partition("/")[2]


def waiting(cluster: Cluster, namespace: str = "") -> list[Waiting]:
    """All that waits, by namespace and then the longest first; "" looks at every namespace.

    Conditions of owners come first. A group is told of only where no condition names it: without
    emit_conditions, that is, or before it has run.
    """
    owners = list(_owners(cluster, namespace))
    told = {name for one in owners for name in _NAME.findall(one.message)}
    groups = [PodGroup.read(body) for body in list_if_served(cluster, POD_GROUPS, namespace)]
    others = [one for one in (*_groups(groups), *_pods(cluster, namespace, groups)) if one.name not in told]
    return sorted([*owners, *others], key=lambda one: (one.namespace, one.since, one.what, one.reason))


def _owners(cluster: Cluster, namespace: str) -> Iterator[Waiting]:
    """Owners whose conditions say False."""
    for resource, view in _OWNERS:
        for body in list_if_served(cluster, resource, namespace):
            owner = view.read(body)
            if owner.finished or owner.being_deleted:
                continue
            prefix = JOB_PREFIX if isinstance(owner, Job) else ""
            for kind in (READY, PLACED):
                condition = find_condition(owner.status.conditions, f"{prefix}{kind}")
                if condition is not None and condition.get("status") == "False":
                    yield _told(body, condition)


def _groups(groups: list[PodGroup]) -> Iterator[Waiting]:
    """Stand-ins, and groups of Muster's that the scheduler has no place for."""
    for group in groups:
        meta = group.metadata
        what = f"podgroup/{meta.name}"
        stand_in = meta.annotations.get(bodies.STAND_IN)
        if stand_in is not None:
            reason, _, message = stand_in.partition(": ")
            yield Waiting(meta.namespace, what, "", reason, f"a stand-in, no gang: {message}")
        elif meta.labels.get(bodies.MANAGED_BY) == bodies.MUSTER and group.refusal is not None:
            reason, message = group.refusal
            condition = find_condition(group.status.conditions, GROUP_PLACED) or {}
            yield Waiting(meta.namespace, what, condition.get("lastTransitionTime", ""), reason, message)


def _pods(cluster: Cluster, namespace: str, groups: list[PodGroup]) -> Iterator[Waiting]:
    """Pods that have Muster's gate, or a group that does not exist; those of a group together."""
    there = {(group.metadata.namespace, group.metadata.name) for group in groups}
    held: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for body in list_if_served(cluster, PODS, namespace, labels=marks.GROUP):
        pod = Pod.read(body)
        where = pod.metadata.namespace
        gated = marks.GATE in pod.gates
        lost = bool(pod.pod_group_name) and (where, pod.pod_group_name) not in there
        if pod.finished or pod.being_deleted or pod.bound or not (gated or lost):
            continue
        created = body["metadata"].get("creationTimestamp", "")
        held.setdefault((where, pod.pod_group_name, lost), []).append((created, pod.metadata.name))
    for (where, group, lost), pods in held.items():
        since, first = min(pods)
        yield _held(where, group, since, f"{len(pods)} pod{'' if len(pods) == 1 else 's'}", first, lost=lost)


def _held(namespace: str, group: str, since: str, count: str, first: str, *, lost: bool) -> Waiting:
    if not group:
        message = f"{count} with Muster's gate and no group: the API server dropped the field schedulingGroup"
        return Waiting(namespace, f"pod/{first}", since, Reason.API_NOT_SERVED, message)
    what = f"podgroup/{group}"
    if lost:
        message = f"{count} of a PodGroup that does not exist"
        return Waiting(namespace, what, since, Reason.WAITING_FOR_POD_GROUP, message)
    return Waiting(namespace, what, since, Reason.SCHEDULING_GATED, f"{count} with Muster's gate")


def _told(body: Object, condition: Mapping[str, Any]) -> Waiting:
    metadata = body["metadata"]
    return Waiting(
        metadata.get("namespace", ""),
        f"{body['kind'].lower()}/{metadata['name']}",
        condition.get("lastTransitionTime", ""),
        condition.get("reason", ""),
        condition.get("message", ""),
    )

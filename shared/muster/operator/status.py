"""List the owners, groups and pods of Muster that wait in a cluster, since when and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.cluster.interface import Cluster, Object
from muster.cluster.read import list_if_served
from muster.objects.meta import find_condition
from muster.objects.pods import Pod
from muster.objects.resources import POD_GROUPS, PODS
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE, GROUP
from muster.policy.owner_status.conditions import READY, SCHEDULED
from muster.policy.owners import KINDS
from muster.policy.ownership import MANAGED_BY, MUSTER
from muster.policy.plans.manifests import FALLBACK
from muster.policy.reasons import Reason

# The messages that are searched are written by the function emit_conditions, which names PodGroups and pods.
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
"""A DNS subdomain in a condition message, which may be the name of an object."""


@dataclass(frozen=True)
class Waiting:
    """An owner, group or pod that waits; `muster status --output json` prints these fields.

    Attributes:
        namespace: of the object.
        what: the object, as `job/llama`.
        since: RFC 3339; "" if unknown.
        reason: a `muster.policy.reasons.Reason`, or the scheduler's.
        message: the message of the condition, or what it waits for.
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
    """Return all that waits, sorted by namespace and then by time, oldest first; "" means all namespaces.

    A group or pod is only listed if the condition message of no owner names it: before emit_conditions has
    run, or where that function is not installed.
    """
    owners = list(_owners(cluster, namespace))
    named = {name for owner in owners for name in _NAME.findall(owner.message)}
    groups = [PodGroup.read(body) for body in list_if_served(cluster, POD_GROUPS, namespace)]
    members = [*_groups(groups), *_pods(cluster, namespace, groups)]
    unnamed = [member for member in members if member.name not in named]
    return sorted([*owners, *unnamed], key=lambda item: (item.namespace, item.since, item.what, item.reason))


def _owners(cluster: Cluster, namespace: str) -> Iterator[Waiting]:
    """Yield each condition of Muster with status False of an owner that is still to run."""
    for kind in KINDS:
        for body in list_if_served(cluster, kind.resource, namespace):
            owner = kind.view.read(body)
            if owner.finished or owner.being_deleted:
                continue
            for name in (READY, SCHEDULED):
                condition = find_condition(owner.status.conditions, f"{kind.condition_prefix}{name}")
                if condition is not None and condition.get("status") == "False":
                    yield _of_condition(body, condition)


def _groups(groups: list[PodGroup]) -> Iterator[Waiting]:
    """Yield basic groups that stand in for a policy that failed, and groups that cannot be scheduled."""
    for group in groups:
        metadata = group.metadata
        name = f"podgroup/{metadata.name}"
        fallback = metadata.annotations.get(FALLBACK)
        if fallback is not None:
            reason, _, message = fallback.partition(": ")
            yield Waiting(metadata.namespace, name, "", reason, f"a fallback PodGroup, no gang: {message}")
        elif metadata.labels.get(MANAGED_BY) == MUSTER and group.refusal is not None:
            reason, message = group.refusal
            condition = find_condition(group.status.conditions, GROUP_PLACED) or {}
            yield Waiting(metadata.namespace, name, condition.get("lastTransitionTime", ""), reason, message)


def _pods(cluster: Cluster, namespace: str, groups: list[PodGroup]) -> Iterator[Waiting]:
    """Yield an entry per group whose pods have Muster's gate, or whose PodGroup does not exist."""
    existing = {(group.metadata.namespace, group.metadata.name) for group in groups}
    pods_by_group: dict[tuple[str, str, bool], list[tuple[str, str]]] = {}
    for body in list_if_served(cluster, PODS, namespace, labels=GROUP):
        pod = Pod.read(body)
        pod_namespace = pod.metadata.namespace
        gated = GATE in pod.gates
        orphaned = bool(pod.pod_group_name) and (pod_namespace, pod.pod_group_name) not in existing
        if pod.finished or pod.being_deleted or pod.bound or not (gated or orphaned):
            continue
        created = body["metadata"].get("creationTimestamp", "")
        key = (pod_namespace, pod.pod_group_name, orphaned)
        pods_by_group.setdefault(key, []).append((created, pod.metadata.name))
    for (pod_namespace, group_name, orphaned), pods in pods_by_group.items():
        since, oldest = min(pods)
        count = f"{len(pods)} pod{'' if len(pods) == 1 else 's'}"
        yield _of_pods(pod_namespace, group_name, since, count, oldest, orphaned=orphaned)


def _of_pods(namespace: str, group: str, since: str, count: str, oldest: str, *, orphaned: bool) -> Waiting:
    if not group:
        message = f"{count} with Muster's gate and no group: the API server dropped the field schedulingGroup"
        return Waiting(namespace, f"pod/{oldest}", since, Reason.API_NOT_SERVED, message)
    name = f"podgroup/{group}"
    if orphaned:
        message = f"{count} of a PodGroup that does not exist"
        return Waiting(namespace, name, since, Reason.WAITING_FOR_POD_GROUP, message)
    return Waiting(namespace, name, since, Reason.SCHEDULING_GATED, f"{count} with Muster's gate")


def _of_condition(body: Object, condition: Mapping[str, Any]) -> Waiting:
    metadata = body["metadata"]
    return Waiting(
        metadata.get("namespace", ""),
        f"{body['kind'].lower()}/{metadata['name']}",
        condition.get("lastTransitionTime", ""),
        condition.get("reason", ""),
        condition.get("message", ""),
    )

"""Summarize the Workloads, PodGroups and owner conditions of a cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from muster.policy.group_labels import GATE
from muster.policy.owners import KINDS
from muster.policy.owners.job import CONDITION_PREFIX
from muster.policy.status.conditions import READY, SCHEDULED
from muster.replay.snapshots import Object

OWNER_KINDS = tuple(kind.resource.kind for kind in KINDS)
MUSTER_CONDITIONS = (READY, SCHEDULED)

Summary = dict[str, Any]
"""A summary as plain data, in the shape that `muster replay --output yaml` prints."""


def summarize(objects: Iterable[Object]) -> Summary:
    """Return the summary of a cluster, sorted by namespace and name."""
    ordered = sorted(objects, key=_sort_key)
    pods: defaultdict[tuple[str, str], list[Object]] = defaultdict(list)
    for body in ordered:
        if body["kind"] == "Pod":
            pods[body["metadata"].get("namespace", ""), group_of(body)].append(body)
    owners = [body for body in ordered if body["kind"] in OWNER_KINDS and muster_conditions(body)]
    return {
        "workloads": [_workload(body) for body in ordered if body["kind"] == "Workload"],
        "podGroups": [_pod_group(body, pods) for body in ordered if body["kind"] == "PodGroup"],
        "owners": [_owner(body) for body in owners],
    }


def muster_conditions(owner: Object) -> list[Object]:
    """Return the conditions that Muster wrote on an owner, without the prefix they have on a Job."""
    conditions = (owner.get("status") or {}).get("conditions") or []
    named = [{**each, "type": str(each.get("type")).removeprefix(CONDITION_PREFIX)} for each in conditions]
    return [condition for condition in named if condition["type"] in MUSTER_CONDITIONS]


def is_gated(pod: Object) -> bool:
    """Whether a pod has Muster's scheduling gate."""
    return GATE in gates(pod)


def gates(pod: Object) -> set[str]:
    """Return the names of the scheduling gates of a pod."""
    return {gate["name"] for gate in pod["spec"].get("schedulingGates") or []}


def group_of(pod: Object) -> str:
    """Return the name of the PodGroup in a pod's schedulingGroup; "" if it has none."""
    name: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return name


def _workload(workload: Object) -> Summary:
    controller = workload["spec"].get("controllerRef") or {}
    templates = workload["spec"].get("podGroupTemplates") or []
    return {
        "namespace": workload["metadata"].get("namespace", ""),
        "name": workload["metadata"]["name"],
        "owner": f"{controller.get('kind', '')} {controller.get('name', '')}",
        "groups": {template["name"]: template["schedulingPolicy"] for template in templates},
    }


def _pod_group(group: Object, pods_of: Mapping[tuple[str, str], list[Object]]) -> Summary:
    metadata = group["metadata"]
    pods = pods_of.get((metadata.get("namespace", ""), metadata["name"]), [])
    owners = metadata.get("ownerReferences") or []
    return {
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "owners": [f"{owner['kind']} {owner['name']}" for owner in owners],
        "schedulingPolicy": group["spec"]["schedulingPolicy"],
        "pods": {
            "total": len(pods),
            "gated": sum(is_gated(pod) for pod in pods),
            "bound": sum(bool(pod["spec"].get("nodeName")) for pod in pods),
        },
    }


def _owner(owner: Object) -> Summary:
    return {
        "kind": owner["kind"],
        "namespace": owner["metadata"].get("namespace", ""),
        "name": owner["metadata"]["name"],
        "conditions": [
            {key: condition.get(key, "") for key in ("type", "status", "reason", "message")}
            for condition in muster_conditions(owner)
        ],
    }


def _sort_key(body: Object) -> tuple[str, str, str]:
    return body["metadata"].get("namespace", ""), body["kind"], body["metadata"]["name"]

"""What Muster made of a cluster, in few words: Workloads, PodGroups, minCounts and what the owners say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from muster.policy.marks import GATE
from muster.policy.status import JOB_PREFIX, PLACED, READY
from muster.replay.snapshots import Object

OWNER_KINDS = ("TrainJob", "JobSet", "Job")
OUR_CONDITIONS = (READY, PLACED)

Outline = dict[str, Any]


def outline(objects: Iterable[Object]) -> Outline:
    """The groups of a cluster as plain data, sorted by namespace and name."""
    found = sorted(objects, key=_where)
    return {
        "workloads": [_workload(one) for one in found if one["kind"] == "Workload"],
        "podGroups": [_pod_group(one, found) for one in found if one["kind"] == "PodGroup"],
        "owners": [_owner(one) for one in found if one["kind"] in OWNER_KINDS and conditions_of(one)],
    }


def conditions_of(owner: Object) -> list[Object]:
    """The conditions that Muster wrote on an owner, without the prefix they have on a Job."""
    told = (owner.get("status") or {}).get("conditions") or []
    plain = [{**one, "type": one["type"].removeprefix(JOB_PREFIX)} for one in told]
    return [one for one in plain if one["type"] in OUR_CONDITIONS]


def size_of(policy: Mapping[str, Any]) -> str:
    """A schedulingPolicy in words: `minCount 3`, `basic`."""
    gang = policy.get("gang")
    return f"minCount {gang['minCount']}" if gang else "basic"


def lines(told: Outline) -> Iterator[str]:
    """An outline for people."""
    for workload in told["workloads"]:
        groups = ", ".join(f"{name} ({size_of(policy)})" for name, policy in workload["groups"].items())
        yield f"Workload {workload['namespace']}/{workload['name']} of {workload['owner']}: {groups}"
    for group in told["podGroups"]:
        pods = group["pods"]
        counts = f"{pods['bound']} of {pods['total']} pods bound, {pods['gated']} gated"
        name = f"{group['namespace']}/{group['name']}"
        owners = ", ".join(group["owners"])
        yield f"PodGroup {name}: {size_of(group['schedulingPolicy'])}, owners {owners}; {counts}"
    for owner in told["owners"]:
        yield f"{owner['kind']} {owner['namespace']}/{owner['name']}"
        for one in owner["conditions"]:
            yield f"  {one['type']:<19}{one['status']:<6} {one['reason']}: {one['message']}"
    if not any(told.values()):
        yield "no Workload, no PodGroup, no condition of Muster's"


def _workload(found: Object) -> Outline:
    controller = found["spec"].get("controllerRef") or {}
    templates = found["spec"].get("podGroupTemplates") or []
    return {
        "namespace": found["metadata"].get("namespace", ""),
        "name": found["metadata"]["name"],
        "owner": f"{controller.get('kind', '')} {controller.get('name', '')}",
        "groups": {one["name"]: one["schedulingPolicy"] for one in templates},
    }


def _pod_group(found: Object, everything: Sequence[Object]) -> Outline:
    metadata = found["metadata"]
    pods = [one for one in everything if one["kind"] == "Pod" and _is_member(one, metadata)]
    return {
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "owners": [f"{one['kind']} {one['name']}" for one in metadata.get("ownerReferences") or []],
        "schedulingPolicy": found["spec"]["schedulingPolicy"],
        "pods": {
            "total": len(pods),
            "gated": sum(is_gated(pod) for pod in pods),
            "bound": sum(bool(pod["spec"].get("nodeName")) for pod in pods),
        },
    }


def is_gated(pod: Object) -> bool:
    """Whether a pod has Muster's gate."""
    return GATE in gates(pod)


def gates(pod: Object) -> set[str]:
    """The names of the scheduling gates of a pod."""
    return {gate["name"] for gate in pod["spec"].get("schedulingGates") or []}


def group_of(pod: Object) -> str:
    """The PodGroup a pod is stamped with, or "" for none."""
    name: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return name


def _is_member(pod: Object, group: Mapping[str, Any]) -> bool:
    return (group_of(pod), pod["metadata"].get("namespace")) == (group["name"], group.get("namespace"))


def _owner(found: Object) -> Outline:
    return {
        "kind": found["kind"],
        "namespace": found["metadata"].get("namespace", ""),
        "name": found["metadata"]["name"],
        "conditions": [
            {key: one.get(key, "") for key in ("type", "status", "reason", "message")}
            for one in conditions_of(found)
        ],
    }


def _where(found: Object) -> tuple[str, str, str]:
    return found["metadata"].get("namespace", ""), found["kind"], found["metadata"]["name"]

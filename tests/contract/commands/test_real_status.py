"""`muster status` on the real API servers: what waits, of every kind, as they store it."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.resources import JOBS, JOBSETS, NAMESPACES, POD_GROUPS, PODS, TRAINJOBS, Resource
from muster.operator.status import State, read_status
from muster.policy.model import Action, Verb
from tests.cluster.cluster import RealCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NAMESPACE = "waiting"
SINCE = "2026-11-21T08:00:00Z"
PODS_SPEC = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
JOB_SPEC = {"template": {"spec": PODS_SPEC}}
GATE = {"schedulingGates": [{"name": "muster.dev/pod-group"}]}

OWNERS: tuple[tuple[Resource, str, dict[str, Any]], ...] = (
    (JOBS, "muster.dev/", JOB_SPEC),
    (JOBSETS, "", {"replicatedJobs": [{"name": "node", "replicas": 1, "template": {"spec": JOB_SPEC}}]}),
    (TRAINJOBS, "", {"runtimeRef": {"name": "torch-distributed"}}),
)
"""Each kind of owner, the prefix of its conditions, and a spec that is valid."""


def _body(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _pod(name: str, group: str, **spec: Any) -> dict[str, Any]:
    spec = PODS_SPEC | {"schedulingGroup": {"podGroupName": group}} | spec
    pod = _body(PODS, name, spec)
    pod["metadata"]["labels"] = {"muster.dev/group": "main"}
    return pod


def _condition(kind: str, reason: str, message: str) -> dict[str, str]:
    condition = {"type": kind, "status": "False", "reason": reason, "message": message}
    return condition | {"lastTransitionTime": SINCE}


def _tell(client: Client, resource: Resource, name: str, condition: dict[str, str]) -> None:
    body = client.get(resource, name, NAMESPACE)
    assert body is not None
    status = body.get("status") or {}
    conditions = [*(status.get("conditions") or []), condition]
    client.replace(
        resource,
        body | {"status": status | {"conditions": conditions}},
        manager="tests",
        subresource="status",
    )


def test_every_kind_of_owner_group_and_pod(real_server: RealCluster) -> None:
    """With the time and message of the condition; healthy objects are not listed."""
    client = client_of(str(real_server.kubeconfig))
    cluster = Versioned(client)
    client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}, manager="tests")
    for resource, prefix, spec in OWNERS:
        client.create(resource, _body(resource, "llama", spec), manager="tests")
        client.create(resource, _body(resource, "well", spec), manager="tests")
        _tell(
            client, resource, "llama", _condition(f"{prefix}PodGroupsScheduled", "Unschedulable", "no room")
        )
    group = _body(POD_GROUPS, "there", {"schedulingPolicy": {"basic": {}}})
    target = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, NAMESPACE, "there")
    cluster.write(Action(Verb.CREATE, target, group), "tests")
    for pod in (_pod("held", "there", **GATE), _pod("lost", "nowhere")):
        client.create(PODS, pod, manager="tests")
    entries = read_status(cluster, NAMESPACE).items
    assert {(one.what, one.reason, one.message) for one in entries} == {
        ("job/llama", "Unschedulable", "no room"),
        ("jobset/llama", "Unschedulable", "no room"),
        ("trainjob/llama", "Unschedulable", "no room"),
        ("podgroup/there", "SchedulingGated", "1 pod with Muster's gate"),
        ("podgroup/nowhere", "WaitingForPodGroup", "1 pod of a PodGroup that does not exist"),
    }
    assert {one.since for one in entries if one.reason == "Unschedulable"} == {SINCE}
    assert all(one.state is State.WAITING and one.since for one in entries)

"""Sizes of gangs that pods name themselves, and why some are none: what stories would show at more cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from muster.cluster.observe.gathered import GatheredGroup, read_gathered
from muster.cluster.observe.snapshot import Snapshot
from muster.policy.groups.gathered import SIZE, GatheredPods
from muster.policy.model import Plan
from muster.policy.plans.gather_pods import plan_gathering
from tests.support.builders import Object

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
UID, DEPLOYMENT, OLD = (f"{digit * 8}-5d0b-4a52-9a3e-0c6a1f0f2b11" for digit in "567")
NAME = "web-main-55555555"
PLACED = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "lastTransitionTime": "2026-11-21T08:00:00Z",
}


def a_pod(
    number: int, label: str = "4", *, kind: str = "StatefulSet", uid: str = UID, **fields: Any
) -> Object:
    """A pod of the controller `web`; `node`, `phase` and `annotations` are set where given."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": True}
    spec: Object = {"schedulingGroup": {"podGroupName": fields.get("group", NAME)}}
    if "node" in fields:
        spec["nodeName"] = fields["node"]
    metadata = {
        "name": f"web-{uid[0]}-{number}",
        "namespace": "team-a",
        "uid": f"pod-{uid[0]}-{number}",
        "creationTimestamp": "2026-11-21T08:20:00Z",
        "labels": {"muster.dev/min-count": label, "muster.dev/gang": spec["schedulingGroup"]["podGroupName"]}
        | {"app": "web", "pod-template-hash": "h"},
        "annotations": fields.get("annotations", {}),
        "ownerReferences": [owner],
    }
    status = {"phase": fields.get("phase", "Pending")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def a_controller(kind: str = "StatefulSet", name: str = "web", uid: str = UID, **spec: Any) -> Object:
    """A StatefulSet, ReplicaSet or Deployment of four."""
    metadata = {"name": name, "namespace": "team-a", "uid": uid}
    spec = {
        "replicas": 4,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "web"}},
    } | spec
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def a_group(count: int, size: int = 4, *conditions: Object, **annotations: str) -> Object:
    """The PodGroup of the gang."""
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/gang": NAME}
    metadata = {"name": NAME, "namespace": "team-a", "uid": "group", "labels": labels}
    metadata |= {"annotations": {SIZE: str(size), **annotations}}
    spec = {"schedulingPolicy": {"gang": {"minCount": count}}}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }
    return group | {"status": {"conditions": list(conditions)}}


def gathered(*objects: Object) -> GatheredPods:
    """Return what a sweep reads of the gang."""
    ref = GatheredGroup("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", NAME)
    return read_gathered(Snapshot(objects), ref)


ALL = [a_pod(number, "all") for number in range(4)]
RUNNING = [a_pod(number, node="node-1") for number in range(4)]
LWS = {"leaderworkerset.sigs.k8s.io/size": "3"}


@pytest.mark.parametrize(
    ("objects", "size", "min_count"),
    [
        pytest.param([a_pod(0)], 4, 4, id="the label, where the controller cannot be read"),
        pytest.param([a_pod(0, "9"), a_controller()], 4, 4, id="at most the replicas"),
        pytest.param([*ALL, a_controller(replicas=6)], 6, 6, id="all"),
        pytest.param(
            [a_pod(0, "all", annotations=LWS), a_controller()], 3, 3, id="a LeaderWorkerSet's replica"
        ),
        pytest.param([a_pod(0, phase="Succeeded"), *RUNNING[1:]], 3, 3, id="without those that succeeded"),
        pytest.param([a_pod(n, phase="Succeeded") for n in range(4)] + [a_pod(5)], 4, 4, id="the next round"),
        pytest.param([*RUNNING[:3], a_group(4, 4, PLACED)], 4, 3, id="no less than what is left waits"),
        pytest.param([*RUNNING, a_pod(5, "6"), a_group(3, 4, PLACED)], 6, 4, id="raised as pods are bound"),
        pytest.param([a_pod(0), a_group(2, 4, PLACED)], 4, 4, id="whole again at a restart"),
    ],
)
def test_the_size_and_min_count(objects: list[Object], size: int, min_count: int) -> None:
    """The whole gang where none runs; what exists beside running pods."""
    inputs = gathered(*objects)
    assert (inputs.size, inputs.min_count) == (size, min_count)


def test_a_revision_beside_a_running_one_needs_only_what_runs() -> None:
    """Also where the running one has no label: else the first surge pod would wait for ever."""
    above = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "front",
        "uid": DEPLOYMENT,
        "controller": True,
    }
    replica_set = a_controller("ReplicaSet")
    replica_set["metadata"]["ownerReferences"] = [above]
    old = a_pod(0, kind="ReplicaSet", uid=OLD, node="node-1", group="other")
    old["metadata"]["ownerReferences"][0]["name"] = "front-h"
    del old["metadata"]["labels"]["muster.dev/min-count"]
    new = a_pod(1, kind="ReplicaSet")
    deployment = a_controller("Deployment", "front", DEPLOYMENT)
    inputs = gathered(replica_set, deployment, new, old)
    assert (inputs.beside, inputs.min_count, str(inputs.made_by)) == (True, 1, "Deployment team-a/front")
    assert gathered(replica_set, deployment, new).min_count == 4


BASIC = {"muster.dev/pod-group-policy": "workload: {schedulingTimeoutSeconds: 60, onTimeout: Basic}"}
HOLD = {"muster.dev/pod-group-policy": "workload: {onFailure: Hold, gangs: []}"}
EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}


@pytest.mark.parametrize(
    ("objects", "reason", "written"),
    [
        pytest.param(
            [a_pod(0), a_controller(podManagementPolicy="OrderedReady")],
            "WaitsForItself",
            ["PodGroup", "Event"],
            id="one after the other",
        ),
        pytest.param(
            [a_pod(0, annotations=EXCLUSIVE)], "WaitsForItself", ["PodGroup", "Event"], id="exclusive"
        ),
        pytest.param(
            [a_pod(0, annotations=HOLD)], "InvalidPolicy", ["Event"], id="held for an invalid policy"
        ),
        pytest.param(
            [a_pod(0, annotations=BASIC), a_group(4)], "GangResized", ["PodGroup", "Event"], id="timeout"
        ),
    ],
)
def test_pods_that_get_no_gang_are_told_why(objects: list[Object], reason: str, written: list[str]) -> None:
    """A basic group in its place and an Event; with onFailure: Hold the pods keep their gate."""
    plan = plan_gathering(gathered(*objects), NOW)
    assert isinstance(plan, Plan)
    assert (plan.reason, [action.target.kind for action in plan.actions]) == (reason, written)


def test_once_given_up_it_stays_so() -> None:
    """The annotation says so; else the next sweep would ask for the whole gang again."""
    group = a_group(1, 1, **{"muster.dev/fallback": "SchedulingTimedOut: 1 of 4 pods exist"})
    assert not isinstance(plan_gathering(gathered(a_pod(0, annotations=BASIC), group), NOW), Plan)

"""Whoever can send events to a function can make it look, and nothing else.

An event only names an object. So whatever a forged one says, the function writes nothing that a sweep, which
is told of no object at all, would not write in the same cluster.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventing.local import planning
from eventing.local.captures import STRUCTURED
from eventing.local.worlds import Object
from shared.cluster.port import Cluster
from shared.objects import resources
from shared.objects.meta import ObjectRef
from shared.policy.model import Action, Observed, Plan, Verb
from shared.policy.reasons import Reason
from shared.runtime.config import Settings
from shared.runtime.handle import Handler
from shared.runtime.step import Step
from tests.replays import recorded
from tests.replays.laws import cluster_of
from tests.replays.noting import NotingCluster, Write

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
WORLDS = (
    ("1-torch", "before create_workload"),
    ("2-torchtune", "before create_pod_groups"),
    ("2-torchtune", "before patch_pods (initializers)"),
    ("4-job-scaled", "before resize_gang to 2"),
    ("5-does-not-fit", "unschedulable"),
    ("1-torch", "complete"),
)
"""In each of them some function has something to do, but for the last, where all is over."""

EXAMPLES = 60
"""Events for each function; together they take a few seconds."""


def writes_of(step: Step, objects: list[Object], event: Mapping[str, Any]) -> list[Write]:
    """What a function writes because of one event, in a cluster of its own that holds these objects."""
    with ExitStack() as stack:
        cluster = NotingCluster(stack.enter_context(cluster_of(objects, step)))
        handler = Handler(step, cluster, Settings(deadline_seconds=60), lambda: NOW)
        handler.handle({"content-type": STRUCTURED}, json.dumps(event).encode())
        return cluster.writes


def sweep_of(event_id: str = "sweep") -> dict[str, Any]:
    """The event that names no object."""
    return {"specversion": "1.0", "id": event_id, "source": "/test", "type": "dev.muster.sweep"}


def forged_writes(step: Step, objects: list[Object], event: Mapping[str, Any]) -> set[Write]:
    """What an event made a function write beyond what a sweep would."""
    return set(writes_of(step, objects, event)) - set(writes_of(step, objects, sweep_of()))


@cache
def swept(step_name: str, world: tuple[str, str]) -> frozenset[Write]:
    """What a sweep writes in a recorded cluster."""
    objects = recorded.world_at(*world).objects
    return frozenset(writes_of(planning.step_named(step_name), objects, sweep_of()))


NAMES = st.sampled_from(["llama", "team-a", "main", "kube-system", "llama-node-0", "x"])
UIDS = st.sampled_from(["", "00000000-0000-0000-0000-000000000000", "4bac6118"])
OWNER_KINDS = (resources.TRAINJOBS, resources.JOBSETS, resources.JOBS, resources.WORKLOADS)
LIES: Mapping[str, st.SearchStrategy[Any]] = {
    "labels": st.sampled_from([{}, {"muster.dev/group": "evil"}, {"app.kubernetes.io/managed-by": "muster"}]),
    "annotations": st.sampled_from([{}, {"muster.dev/pod-group-policy": "groups: []"}]),
    "deletionTimestamp": st.just("2026-11-21T08:00:00Z"),
    "finalizers": st.just(["example.com/never"]),
    "resourceVersion": st.sampled_from(["0", "999999999"]),
}
SPECS = st.sampled_from(
    [
        {"parallelism": 1000, "completions": 1000},
        {"suspend": True},
        {"managedBy": "example.com/me"},
        {"schedulingGates": [{"name": "muster.dev/pod-group"}]},
        {"schedulingGroup": {"podGroupName": "somebody-elses"}},
        {"schedulingPolicy": {"gang": {"minCount": 1}}},
    ]
)
STATUSES = st.sampled_from(
    [
        {"conditions": [{"type": "Complete", "status": "True"}]},
        {"conditions": [{"type": "Suspended", "status": "True"}]},
        {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}]},
        {"active": 1000, "ready": 1000, "restarts": 7},
    ]
)


@st.composite
def lied_about(draw: st.DrawFn, objects: list[Object]) -> Object:
    """One of the objects, or none that exists, with some of its fields told differently."""
    told = copy.deepcopy(draw(st.sampled_from(objects)))
    told.pop("moment", None)
    metadata = told["metadata"]
    if draw(st.booleans()):
        kind = draw(st.sampled_from([(one["apiVersion"], one["kind"]) for one in objects] + _kinds()))
        told["apiVersion"], told["kind"] = kind
    if draw(st.booleans()):
        metadata["name"] = draw(NAMES)
    if draw(st.booleans()):
        metadata["namespace"] = draw(NAMES)
    if draw(st.booleans()):
        metadata["uid"] = draw(UIDS)
    for field in draw(st.sets(st.sampled_from(sorted(LIES)), max_size=2)):
        metadata[field] = draw(LIES[field])
    if draw(st.booleans()):
        other = draw(st.sampled_from(objects))
        owner = {key: other[key] for key in ("apiVersion", "kind")}
        owner |= {"name": other["metadata"]["name"], "uid": other["metadata"]["uid"], "controller": True}
        metadata["ownerReferences"] = [owner]
    if draw(st.booleans()):
        told["spec"] = {**told.get("spec", {}), **draw(SPECS)}
    if draw(st.booleans()):
        told["status"] = {**told.get("status", {}), **draw(STATUSES)}
    return told


def _kinds() -> list[tuple[str, str]]:
    known = (*OWNER_KINDS, resources.PODS, resources.POD_GROUPS, resources.COMPOSITE_POD_GROUPS)
    others = [("kueue.x-k8s.io/v1beta1", "Workload"), ("batch.volcano.sh/v1alpha1", "Job"), ("v1", "Secret")]
    return [(one.api_version, one.kind) for one in known] + others


@st.composite
def forged(draw: st.DrawFn, objects: list[Object]) -> dict[str, Any]:
    """A CloudEvent about what is told, in either mode, whose attributes may say something else again."""
    told = draw(lied_about(objects))
    mode, happened = (
        draw(st.sampled_from(["resource", "ref"])),
        draw(st.sampled_from(["add", "update", "delete"])),
    )
    data: Any = told
    if mode == "ref":
        data = {key: told[key] for key in ("apiVersion", "kind")}
        data |= {key: told["metadata"][key] for key in ("namespace", "name") if key in told["metadata"]}
    return {
        "specversion": "1.0",
        "id": draw(st.sampled_from(["a", "b"])),
        "source": "https://attacker.example.com",
        "type": f"dev.knative.apiserver.{mode}.{happened}",
        "kind": draw(st.sampled_from([told["kind"], "Pod", "Secret"])),
        "name": draw(NAMES),
        "datacontenttype": "application/json",
        "data": data,
    }


@dataclass(frozen=True)
class Forgery:
    """An event, and the cluster in which it is told."""

    world: tuple[str, str]
    event: dict[str, Any]


@st.composite
def forgeries(draw: st.DrawFn) -> Forgery:
    """Any forged event in any of the worlds."""
    world = draw(st.sampled_from(WORLDS))
    return Forgery(world, draw(forged(recorded.world_at(*world).objects)))


@pytest.mark.parametrize("name", planning.step_names())
def test_a_forged_event_writes_nothing_that_a_sweep_would_not(name: str) -> None:
    """Kind, name, UID, owner, spec and status may all be lies; what is written follows from the cluster."""
    step = planning.step_named(name)

    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(forgeries())
    def hold(forgery: Forgery) -> None:
        written = writes_of(step, recorded.world_at(*forgery.world).objects, forgery.event)
        assert set(written) <= swept(name, forgery.world)

    hold()


@pytest.mark.parametrize("name", planning.step_names())
def test_every_function_has_something_to_write_in_these_worlds(name: str) -> None:
    """Where nothing is to be done, a forged event would prove nothing."""
    if name == "mark_runtime":
        pytest.skip("runtimes of the recordings need a policy first")
    assert any(swept(name, world) for world in WORLDS)


def _true_events() -> Iterator[Any]:
    told = {
        "create_workload": (WORLDS[0], "TrainJob", "add"),
        "create_pod_groups": (WORLDS[1], "Workload", "add"),
        "patch_pods": (WORLDS[2], "PodGroup", "add"),
        "resize_gang": (WORLDS[3], "Job", "update"),
        "emit_conditions": (WORLDS[4], "PodGroup", "update"),
    }
    for name, (world, kind, happened) in told.items():
        yield pytest.param(name, world, kind, happened, id=f"{name} by {kind} {happened}")


@pytest.mark.parametrize(("name", "world", "kind", "happened"), _true_events())
def test_a_true_event_does_write(name: str, world: tuple[str, str], kind: str, happened: str) -> None:
    """Of the same making, about an object as it is: the events above are not all refused at the door."""
    objects = recorded.world_at(*world).objects
    told = next(one for one in objects if one["kind"] == kind)
    event = {
        "specversion": "1.0",
        "id": "a",
        "source": "https://anybody.example.com",
        "type": f"dev.knative.apiserver.ref.{happened}",
        "data": {"apiVersion": told["apiVersion"], "kind": kind, "namespace": "team-a"}
        | {"name": told["metadata"]["name"]},
    }
    written = writes_of(planning.step_named(name), objects, event)
    assert written
    assert set(written) <= swept(name, world)


def test_a_function_that_believes_its_events_is_caught() -> None:
    """One that deletes whatever an event names writes what no sweep would."""

    def believe(observed: Observed, now: datetime) -> Plan:  # noqa: ARG001
        return Plan(Reason.ORPHANS_REMOVED, "", (Action(Verb.DELETE, observed.subject),))

    def look(cluster: Cluster, subject: ObjectRef) -> Observed:  # noqa: ARG001
        return Observed(subject)

    credulous = replace(
        planning.step_named("create_workload"), observe=look, plan=believe, responsible_for=lambda _: iter(())
    )
    objects = recorded.world_at(*WORLDS[0]).objects
    event = {**sweep_of(), "type": "dev.knative.apiserver.ref.add"}
    named = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "team-a", "name": "llama-node-0"}
    assert forged_writes(credulous, objects, event | {"data": named})

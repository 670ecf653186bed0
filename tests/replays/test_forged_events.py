"""Forged events: a sender of events can make a function read the cluster, and nothing else.

An event only names an object. So whatever a forged one says, the function writes nothing that a sweep, which
gets no object at all, would not write in the same cluster.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cluster.interface import Cluster
from muster.events import dead_letters
from muster.objects import resources
from muster.objects.meta import ObjectRef
from muster.policy.model import Action, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION
from muster.replay.recorded_requests import STRUCTURED
from muster.replay.snapshots import Object
from muster.runtime import steps
from muster.runtime.config import Settings, connect
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.step import Step
from muster.simulator.apiserver import ApiServer
from muster.testing.laws import cluster_of
from tests.replays import recorded
from tests.replays.noting import NotingCluster, Write
from tests.support.planning import Observed

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
MOMENTS = (
    ("1-torch", "before patch_pods"),
    ("2-torchtune", "before create_pod_groups"),
    ("4-job-scaled", "before resize_gang to 2"),
    ("5-does-not-fit", "before create_workload"),
    ("7-runtime-annotated", "before mark_runtime"),
)
"""Recorded clusters, each in a namespace of its own; in each some function has something to do."""

EXAMPLES = 40
"""Events for each function; together they take a few seconds."""


@cache
def world() -> list[Object]:
    """The objects of all these clusters in one."""
    merged = {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for story, moment in MOMENTS
        for obj in recorded.world_at(story, moment).objects
    }
    return list(merged.values())


class ForgeryStage:
    """An embedded API server with these objects, set up anew after each write."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._stops = ExitStack()
        self._cluster: NotingCluster | None = None

    def writes(self, event: Mapping[str, Any]) -> list[Write]:
        """Return the writes of the function for one event."""
        if self._cluster is None:
            self._cluster = NotingCluster(self._stops.enter_context(cluster_of(world(), self._step)))
        handler = Handler(self._step, self._cluster, Settings(deadline_seconds=60), lambda: NOW)
        handler.handle({"content-type": STRUCTURED}, json.dumps(event).encode())
        written = self._cluster.writes
        if written:
            self.close()
        return written

    def close(self) -> None:
        """Stop the server."""
        self._stops.close()
        self._cluster = None


def writes_of(step: Step, event: Mapping[str, Any]) -> set[Write]:
    """Return the writes of a function for one event."""
    with closing(ForgeryStage(step)) as stage:
        return set(stage.writes(event))


def a_sweep() -> dict[str, Any]:
    """The event of a sweep, which names no object."""
    return {"specversion": "1.0", "id": "sweep", "source": "/test", "type": "dev.muster.sweep"}


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
SPECS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"parallelism": 1000, "completions": 1000},
        {"suspend": True},
        {"managedBy": "example.com/me"},
        {"schedulingGates": [{"name": "muster.dev/pod-group"}]},
        {"schedulingGroup": {"podGroupName": "somebody-elses"}},
        {"schedulingPolicy": {"gang": {"minCount": 1}}},
    ]
)
STATUSES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"conditions": [{"type": "Complete", "status": "True"}]},
        {"conditions": [{"type": "Suspended", "status": "True"}]},
        {"conditions": [{"type": "PodGroupInitiallyScheduled", "status": "True", "reason": "Scheduled"}]},
        {"active": 1000, "ready": 1000, "restarts": 7},
    ]
)


@st.composite
def lied_about(draw: st.DrawFn, objects: list[Object]) -> Object:
    """Draw an existing or invented object, with some fields changed."""
    sent_object = copy.deepcopy(draw(st.sampled_from(objects)))
    sent_object.pop("moment", None)
    metadata = sent_object["metadata"]
    if draw(st.booleans()):
        kind = draw(st.sampled_from([(obj["apiVersion"], obj["kind"]) for obj in objects] + _kinds()))
        sent_object["apiVersion"], sent_object["kind"] = kind
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
        owner |= {
            "name": other["metadata"]["name"],
            "uid": other["metadata"].get("uid", "none"),
            "controller": True,
        }
        metadata["ownerReferences"] = [owner]
    if draw(st.booleans()):
        sent_object["spec"] = {**sent_object.get("spec", {}), **draw(SPECS)}
    if draw(st.booleans()):
        sent_object["status"] = {**sent_object.get("status", {}), **draw(STATUSES)}
    return sent_object


def _kinds() -> list[tuple[str, str]]:
    known = (*OWNER_KINDS, resources.PODS, resources.POD_GROUPS, resources.COMPOSITE_POD_GROUPS)
    others = [("kueue.x-k8s.io/v1beta1", "Workload"), ("batch.volcano.sh/v1alpha1", "Job"), ("v1", "Secret")]
    return [(resource.api_version, resource.kind) for resource in known] + others


@st.composite
def forged(draw: st.DrawFn, objects: list[Object]) -> dict[str, Any]:
    """Draw a CloudEvent about a changed object, in either mode, whose attributes may differ from its data."""
    forged = draw(lied_about(objects))
    mode, happened = (
        draw(st.sampled_from(["resource", "ref"])),
        draw(st.sampled_from(["add", "update", "delete"])),
    )
    data: Any = forged
    if mode == "ref":
        data = {key: forged[key] for key in ("apiVersion", "kind")}
        data |= {key: forged["metadata"][key] for key in ("namespace", "name") if key in forged["metadata"]}
    return {
        "specversion": "1.0",
        "id": draw(st.sampled_from(["a", "b"])),
        "source": "https://attacker.example.com",
        "type": f"dev.knative.apiserver.{mode}.{happened}",
        "kind": draw(st.sampled_from([forged["kind"], "Pod", "Secret"])),
        "name": draw(NAMES),
        "datacontenttype": "application/json",
        "data": data,
    }


@pytest.mark.thorough
@pytest.mark.parametrize("name", steps.step_names())
def test_a_forged_event_writes_nothing_that_a_sweep_would_not(name: str) -> None:
    """With forged kind, name, UID, owner, spec or status a function writes only what a sweep would write."""
    step = steps.step_named(name)
    swept = writes_of(step, a_sweep())
    assert swept, "where nothing is to be done, a forged event would prove nothing"

    with closing(ForgeryStage(step)) as stage:

        @settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
        @given(forged(world()))
        def hold(event: dict[str, Any]) -> None:
            assert set(stage.writes(event)) <= swept

        hold()


TRUE_EVENTS = [
    pytest.param("create_workload", "team-e", "Job", "add", id="create_workload by a Job"),
    pytest.param("create_pod_groups", "team-b", "Workload", "add", id="create_pod_groups by a Workload"),
    pytest.param("patch_pods", "team-a", "PodGroup", "add", id="patch_pods by a PodGroup"),
    pytest.param("resize_gang", "team-d", "Job", "update", id="resize_gang by a Job"),
    pytest.param("emit_conditions", "team-a", "PodGroup", "update", id="emit_conditions by a PodGroup"),
    pytest.param(
        "mark_runtime", "", "ClusterTrainingRuntime", "update", id="mark_runtime by a ClusterTrainingRuntime"
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "namespace", "kind", "happened"), TRUE_EVENTS)
def test_a_true_event_does_write(name: str, namespace: str, kind: str, happened: str) -> None:
    """A true event of the same form makes the function write, so the forged ones are not simply refused."""
    step = steps.step_named(name)
    sent_object = next(
        obj
        for obj in world()
        if obj["kind"] == kind and obj["metadata"].get("namespace", "") == namespace and _has_a_policy(obj)
    )
    named = {"namespace": namespace, "name": sent_object["metadata"]["name"]}
    data = {key: sent_object[key] for key in ("apiVersion", "kind")} | named
    written = writes_of(step, a_sweep() | {"type": f"dev.knative.apiserver.ref.{happened}", "data": data})
    assert written
    assert written <= writes_of(step, a_sweep())


def _has_a_policy(obj: Object) -> bool:
    """Return whether mark-runtime would write to a runtime; True for other kinds."""
    return not obj["kind"].endswith("Runtime") or ANNOTATION in obj["metadata"].get("annotations", {})


def test_a_function_that_believes_its_events_is_caught() -> None:
    """The law fails for a step that deletes the object in the event."""

    def believe(observed: Observed, now: datetime) -> Plan:  # noqa: ARG001 - a plan function is given the time
        return Plan(Reason.ORPHANS_REMOVED, "", (Action(Verb.DELETE, observed.subject),))

    def look(cluster: Cluster, subject: ObjectRef) -> Observed:  # noqa: ARG001 - it does not look
        return Observed(subject)

    credulous = replace(steps.step_named("create_workload"), observe=look, plan=believe)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "kube-system", "name": "llama"}
    event = a_sweep() | {"type": "dev.knative.apiserver.ref.add", "data": reference}
    assert not writes_of(credulous, event) <= writes_of(credulous, a_sweep())


HOME = "muster-system"
ROOM = 3
"""Number of dead letters that are kept."""

BROKERS_WORDS = st.fixed_dictionaries(
    {},
    optional={
        "knativeerrordest": st.sampled_from(
            ["http://patch-pods.muster-system", "http://x/", "configmaps/one"]
        ),
        "knativeerrorcode": st.sampled_from(["400", "0", "-1", "words"]),
        "knativeerrordata": st.sampled_from(["bm8=", "not base64", ""]),
        dead_letters.REDRIVES: st.sampled_from(["1", "x", "../one"]),
        "id": st.text(min_size=1, max_size=20),
    },
)
"""The attributes that a broker adds to a dead letter, as a forger would set them."""


def test_a_forged_dead_letter_is_kept_as_any_other_and_nothing_else_is_written() -> None:
    """A forged dead letter becomes a ConfigMap of Muster's, in its namespace; the oldest one is deleted."""
    bystander = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": HOME, "labels": {"app.kubernetes.io/managed-by": "muster"}},
    }
    with ApiServer() as server:
        server.load([bystander])
        before = server.snapshot()
        cluster = NotingCluster(connect(Settings(api_server=server.url)))
        room = Settings(dead_letter_limit=ROOM, dead_letter_namespace=HOME)
        keeper = DeadLetters(cluster, room, lambda: NOW)

        @settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
        @given(forged(world()), BROKERS_WORDS)
        def hold(event: dict[str, Any], words: dict[str, str]) -> None:
            keeper.handle({"content-type": STRUCTURED}, json.dumps(event | words).encode())
            after = server.snapshot()
            kept = [obj for obj in after if obj not in before]
            assert len(kept) <= ROOM
            assert {_label(obj) for obj in kept} == {"true"}
            assert [obj for obj in before if obj not in after] == []

        hold()
        assert {(what, plural) for what, plural, _, _ in cluster.writes} == {
            ("create", "configmaps"),
            ("delete", "configmaps"),
        }
        assert all(name.startswith(f"{HOME}/dead-letter-") for _, _, name, _ in cluster.writes)


def _label(obj: Object) -> str | None:
    labels: dict[str, str] = obj["metadata"].get("labels") or {}
    return labels.get(dead_letters.LABEL)

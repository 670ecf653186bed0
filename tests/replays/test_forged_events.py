"""Forged events: a sender of events can make a function read the cluster, and nothing else.

An event only names an object. So whatever a forged one says, the function writes nothing that a sweep, which
gets no object at all, would not write in the same cluster.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cluster.interface import Cluster, Object, PatchType
from muster.events.parse import STRUCTURED
from muster.objects import resources
from muster.objects.meta import ObjectRef
from muster.objects.resources import by_kind
from muster.policy.model import Action, Plan, Verb
from muster.policy.reasons import Reason
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.step import Step
from muster.testing.laws import cluster_of
from tests.replays import recorded
from tests.replays.golden import ROOT, GoldenCase
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

GATHERED = GoldenCase(ROOT / "gather_pods" / "the-first-pod-of-a-gang-gets-a-PodGroup-under-the-policy")
"""Pods of no owner that Muster knows, which no recording has."""

Write = tuple[str, str, str, str]
"""Verb with subresource, plural, namespace/name, and body as JSON."""


def _noted(action: Action) -> Write:
    target = action.target
    verb = f"{action.verb} {action.subresource}".strip()
    plural = by_kind(target.api_version, target.kind).plural
    body = json.dumps(_without_versions(_sent(action)), sort_keys=True)
    return verb, plural, f"{target.namespace}/{target.name}", body


def _sent(action: Action) -> Any:
    """Return the body of the request: the object, the patch or its operations, or the UID to delete."""
    if action.verb is Verb.DELETE:
        return {"uid": action.target.uid}
    return action.operations if action.patch is PatchType.JSON else action.body


def _without_versions(body: Any) -> Any:
    """Return a body without resourceVersions, which depend on earlier writes."""
    if isinstance(body, list | tuple):
        return [_without_versions(entry) for entry in body]
    if isinstance(body, Mapping):
        return {name: _without_versions(value) for name, value in body.items() if name != "resourceVersion"}
    return body


@cache
def world() -> list[Object]:
    """The objects of all these clusters in one."""
    merged = {
        (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for story, moment in MOMENTS
        for obj in recorded.world_at(story, moment).objects
    }
    merged |= {("Pod", "", str(number)): obj for number, obj in enumerate(GATHERED.case.objects)}
    return list(merged.values())


def writes_of(step: Step, event: Mapping[str, Any]) -> set[Write]:
    """Return the writes of a function for one event in these clusters, without refused ones."""
    done: set[Write] = set()
    with cluster_of(world(), step) as cluster:
        carry_out = cluster.write

        def write(action: Action, manager: str) -> Object:
            stored = carry_out(action, manager)
            done.add(_noted(action))
            return stored

        with mock.patch.object(cluster, "write", write):
            handler = Handler(step, cluster, Settings(deadline_seconds=60), lambda: NOW)
            handler.handle({"content-type": STRUCTURED}, json.dumps(event).encode())
    return done


def a_sweep() -> dict[str, Any]:
    """The event of a sweep, which names no object."""
    return {"specversion": "1.0", "id": "sweep", "source": "/test", "type": "dev.muster.sweep"}


NAMES = st.sampled_from(["llama", "team-a", "main", "kube-system", "llama-node-0", "x"])
KINDS = st.sampled_from(
    [
        *((resource.api_version, resource.kind) for resource in resources.ALL.values()),
        ("batch.volcano.sh/v1alpha1", "Job"),
        ("v1", "Secret"),
    ]
)
LIES: Mapping[str, st.SearchStrategy[Any]] = {
    "name": NAMES,
    "namespace": NAMES,
    "uid": st.sampled_from(["", "00000000-0000-0000-0000-000000000000"]),
    "labels": st.sampled_from([{}, {"muster.dev/group": "evil"}, {"app.kubernetes.io/managed-by": "muster"}]),
    "annotations": st.sampled_from([{}, {"muster.dev/pod-group-policy": "groups: []"}]),
    "deletionTimestamp": st.just("2026-11-21T08:00:00Z"),
}
SPECS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"parallelism": 1000, "completions": 1000},
        {"suspend": True},
        {"schedulingGates": [{"name": "muster.dev/pod-group"}]},
        {"schedulingGroup": {"podGroupName": "somebody-elses"}},
        {"schedulingPolicy": {"gang": {"minCount": 1}}},
    ]
)
CONDITIONS = st.sampled_from(["Complete", "Suspended", "PodGroupInitiallyScheduled"])


@st.composite
def forged(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a CloudEvent about an existing or invented object with some fields changed, in either mode."""
    body = copy.deepcopy(draw(st.sampled_from(world())))
    body.pop("moment", None)
    if draw(st.booleans()):
        body["apiVersion"], body["kind"] = draw(KINDS)
    for field in draw(st.sets(st.sampled_from(sorted(LIES)), max_size=3)):
        body["metadata"][field] = draw(LIES[field])
    if draw(st.booleans()):
        body["spec"] = {**body.get("spec", {}), **draw(SPECS)}
    if draw(st.booleans()):
        body["status"] = {"conditions": [{"type": draw(CONDITIONS), "status": "True"}]}
    mode = draw(st.sampled_from(["resource", "ref"]))
    names = {key: body["metadata"].get(key, "") for key in ("namespace", "name")}
    happened = draw(st.sampled_from(["add", "update", "delete"]))
    data = body if mode == "resource" else {key: body[key] for key in ("apiVersion", "kind")} | names
    return a_sweep() | {"type": f"dev.knative.apiserver.{mode}.{happened}", "data": data}


@pytest.mark.parametrize("name", sorted({*steps.step_names()} - steps.OPTIONAL))
def test_a_forged_event_writes_nothing_that_a_sweep_would_not(name: str) -> None:
    """With forged kind, name, UID, spec or status a function writes only what a sweep would write."""
    step = steps.step_named(name)
    swept = writes_of(step, a_sweep())
    assert swept, "where nothing is to be done, a forged event would prove nothing"

    @settings(max_examples=20, derandomize=True, deadline=None)
    @given(forged())
    def hold(event: dict[str, Any]) -> None:
        assert writes_of(step, event) <= swept

    hold()


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

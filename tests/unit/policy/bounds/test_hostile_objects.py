"""Any object that the API server accepts is planned within 100 ms and 20 MiB, without an exception."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from bench.world import STEPS
from muster import steps
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import KubernetesObject
from muster.policy.limits import DEFAULT_LIMITS as LIMITS
from muster.policy.model import NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.direct import Direct
from tests.support import cpu
from tests.support.builders import (
    NOW,
    Object,
    a_jobset,
    a_namespace,
    a_replicated_job,
    annotated,
)
from tests.support.hostile_objects import PER_JOB, a_jobset_that_starts_in_turns, stored, tenants

SECONDS = 0.1
MEBIBYTES = 20
NUMBERS = count()
BASIC = "workload: {groups: [{name: main, schedulingPolicy: {basic: {}}}]}"
GROUPS_OF_GROUPS = "workload: {groups: [{name: a, groups: [{name: b, per: Job, groups: [{name: main}]}]}]}"
BOUNDED = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@pytest.fixture(autouse=True, scope="module")
def _without_objects_of_other_tests() -> Iterator[None]:
    """Garbage collections within a plan do not look at what earlier tests of the process left."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(name="client", scope="module")
def _client() -> Iterator[Direct]:
    with ApiServer() as server:
        server.load(resource_definitions())
        yield Direct.to(server)


def planned(name: str, cluster: Snapshot, body: Object) -> Plan | NoOp:
    """What a step decides about an object."""
    step = steps.step_named(name)
    return step.plan(step.observe(cluster, KubernetesObject.read(body).ref), NOW)


def is_quick(name: str, cluster: Snapshot, body: Object) -> bool:
    """Whether one of ten plans takes little CPU; the machine may be busy."""
    return any(cpu.seconds_of(lambda: planned(name, cluster, body)) < SECONDS for _ in range(10))


def subjects(name: str, objects: list[Object]) -> list[Object]:
    """The objects that a step may be asked to look at."""
    runtimes = [body for body in objects if body["kind"].endswith("TrainingRuntime")]
    if name == "mark_runtime":
        return runtimes
    return [
        body for body in objects if body["kind"] not in {"Namespace", "ConfigMap"} and body not in runtimes
    ]


@pytest.mark.thorough
@given(drawn=tenants(), enabled=st.booleans())
@BOUNDED
def test_any_object_is_planned_quickly(client: Direct, drawn: list[Object], enabled: bool) -> None:
    """By every step; a slow plan is timed again, because the machine may have been busy."""
    objects = stored(client, f"team-{next(NUMBERS)}", drawn, enabled=enabled)
    event(f"{len(objects) - 1} stored")
    cluster = Snapshot(objects)
    for name in STEPS:
        for body in subjects(name, objects):
            assert is_quick(name, cluster, body), (name, body["kind"])


@pytest.mark.thorough
@given(drawn=tenants(), enabled=st.booleans())
@settings(BOUNDED, max_examples=5)
def test_any_object_is_planned_in_little_memory(client: Direct, drawn: list[Object], enabled: bool) -> None:
    """At most 20 MiB beside the objects themselves."""
    objects = stored(client, f"team-{next(NUMBERS)}", drawn, enabled=enabled)
    cluster = Snapshot(objects)
    for name in STEPS:
        for body in subjects(name, objects):
            assert _peak(name, cluster, body) < MEBIBYTES * 2**20, (name, body["kind"])


def test_groups_that_start_one_after_another_are_planned_quickly() -> None:
    """The start is simulated; each pod that comes would be tried again with each group."""
    jobset = a_jobset_that_starts_in_turns(links=23, waiting=58)
    cluster = Snapshot([a_namespace(), jobset])
    assert planned("create_workload", cluster, jobset).reason == Reason.INVALID_POLICY
    assert is_quick("create_workload", cluster, jobset)


def _peak(name: str, cluster: Snapshot, body: Any) -> int:
    tracemalloc.start()
    try:
        planned(name, cluster, body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


LARGEST = {
    "one PodGroup for each Job": [
        a_replicated_job("node", PER_JOB, replicas=LIMITS.pod_groups, label="main")
    ],
    "PodGroups that four templates share": [
        a_replicated_job(f"node-{number}", PER_JOB, replicas=LIMITS.pod_groups, label="main")
        for number in range(LIMITS.pod_group_members // LIMITS.pod_groups)
    ],
    "all templates in the same PodGroups": [
        a_replicated_job(
            f"node-{number}",
            PER_JOB,
            replicas=LIMITS.pod_group_members // LIMITS.replicated_jobs,
            label="main",
            after=(f"node-{number - 1}",) if number else (),
        )
        for number in range(LIMITS.replicated_jobs)
    ],
    "one CompositePodGroup for each PodGroup": [
        a_replicated_job("node", PER_JOB, replicas=LIMITS.pod_groups // 2 - 1, label="main")
    ],
}
"""JobSets at the limits."""
POLICIES = {"one CompositePodGroup for each PodGroup": GROUPS_OF_GROUPS}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "entries"), LARGEST.items(), ids=LARGEST)
def test_the_largest_owner_is_planned_in_the_same_bounds(name: str, entries: list[Object]) -> None:
    """By every step, before its groups exist and afterwards; its stages may wait for one another."""
    jobset = a_jobset(*entries, modifiers=[annotated({ANNOTATION: POLICIES.get(name, BASIC)})])
    objects = [a_namespace(), jobset]
    for step in ("create_workload", "create_pod_groups", "emit_conditions"):
        cluster = Snapshot(objects)
        decision = planned(step, cluster, jobset)
        assert isinstance(decision, Plan)
        assert is_quick(step, cluster, jobset)
        for action in decision.actions:
            if action.target.kind in {"Workload", "PodGroup", "CompositePodGroup"}:
                body = dict(action.body or {})
                objects.append(body | {"metadata": {**body["metadata"], "uid": body["metadata"]["name"]}})
    cluster = Snapshot(objects)
    for step in sorted(set(STEPS) - {"mark_runtime"}):
        assert is_quick(step, cluster, jobset)
        assert _peak(step, cluster, jobset) < MEBIBYTES * 2**20


def test_the_annotations_of_a_jobset_are_not_copied_for_each_replicated_job() -> None:
    """The API server takes 262,144 bytes of them: 1,000 replicatedJobs took 1.4 s of CPU in every plan."""
    entries = [a_replicated_job(f"node-{number}", label="main") for number in range(1000)]
    for entry in entries:
        entry["template"].setdefault("metadata", {})["annotations"] = {"a": "b"}
    jobset = a_jobset(*entries, modifiers=[annotated({f"{number:x}": "" for number in range(43_000)})])
    for step in ("create_workload", "emit_conditions"):
        assert is_quick(step, Snapshot([a_namespace(), jobset]), jobset)

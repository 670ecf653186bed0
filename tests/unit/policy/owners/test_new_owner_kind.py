"""A kind of owner is one file: a made-up kind is added, and no other file of policy or cluster is touched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.cluster.observe.snapshot import Snapshot
from muster.data import FUNCTIONS
from muster.events.model import Happened, ResourceEvent
from muster.objects import resources
from muster.objects.meta import ObjectRef
from muster.objects.resources import JOBSETS, Resource
from muster.policy import owners
from muster.policy.model import Plan, Verb
from muster.policy.owners.kind import OwnerKind, OwnerObject, OwnerSpec
from muster.policy.reasons import Reason
from muster.runtime.step import Step
from muster.runtime.steps import load_step
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_jobset,
    a_namespace,
    a_replicated_job,
    an_object,
)

# ---- the file that a new kind is ------------------------------------------------------------------

SWARMS = Resource("example.dev", "v1", "swarms", "Swarm")


class SwarmSpec(OwnerSpec):
    """The spec of a Swarm."""

    managed_by: str = "example.dev/swarm-controller"


class Swarm(OwnerObject):
    """A Swarm, which runs as a JobSet of its name."""

    spec: SwarmSpec = SwarmSpec()


SWARM = OwnerKind(resource=SWARMS, view=Swarm, controller="example.dev/swarm-controller", runs_as=JOBSETS)

# ---- what everything else makes of it ---------------------------------------------------------------

UID = "77777777-5d0b-4a52-9a3e-0c6a1f0f2b11"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two lists that a new kind is entered in."""
    monkeypatch.setattr(resources, "ALL", [*resources.ALL, SWARMS])
    monkeypatch.setattr(owners, "KINDS", owners.KINDS)
    owners.KINDS.insert(0, SWARM)


@pytest.fixture(autouse=True)
def _removed() -> Iterator[None]:
    yield
    owners.KINDS.remove(SWARM)


def a_swarm(**spec: Any) -> Object:
    """The Swarm `llama`."""
    swarm = an_object("example.dev/v1", "Swarm", "llama", UID)
    return swarm | {"spec": spec}


def its_jobset() -> Object:
    """The JobSet that its controller made: four workers."""
    jobset = a_jobset(a_replicated_job("workers", pods=4))
    jobset["metadata"]["ownerReferences"] = [
        {"apiVersion": "example.dev/v1", "kind": "Swarm", "name": "llama", "uid": UID, "controller": True}
    ]
    return jobset


def step(name: str) -> Step:
    """A step loaded after the kind was registered, as at the start of a function."""
    return load_step.__wrapped__(FUNCTIONS / name / "function" / "step.py")


def added(body: Object) -> ResourceEvent:
    """The event of an object that was added."""
    meta = body["metadata"]
    ref = ObjectRef(body["apiVersion"], body["kind"], meta["namespace"], meta["name"], meta["uid"])
    return ResourceEvent("1", Happened.ADD, ref, body)


def planned(name: str, objects: list[Object], subject: Object) -> Plan:
    """The plan of a step for an object among others."""
    loaded = step(name)
    decision = loaded.plan(loaded.observe(Snapshot(objects), added(subject).ref), NOW)
    assert isinstance(decision, Plan), decision
    return decision


def test_its_jobset_leads_to_a_workload_of_its_own() -> None:
    """The JobSet's event is about the Swarm: the Workload names it as controller and gangs its pods."""
    jobset = its_jobset()
    create_workload = step("create_workload")
    assert create_workload.predicate(added(jobset)) == added(jobset).ref
    plan = planned("create_workload", [a_swarm(), jobset, a_namespace()], jobset)
    (action,) = plan.actions
    assert (plan.reason, action.verb, action.target.name) == (Reason.WORKLOAD_CREATED, Verb.CREATE, "llama")
    spec = (action.body or {})["spec"]
    assert spec["controllerRef"] == {"apiGroup": "example.dev", "kind": "Swarm", "name": "llama"}
    (template,) = spec["podGroupTemplates"]
    assert (template["name"], template["schedulingPolicy"]) == ("workers", {"gang": {"minCount": 4}})


def test_its_groups_are_created_and_named_after_its_jobset() -> None:
    """The name on the pods has the JobSet's UID; the group belongs to the Swarm."""
    swarm, jobset, namespace = a_swarm(), its_jobset(), a_namespace()
    workload = planned("create_workload", [swarm, jobset, namespace], jobset).actions[0].body or {}
    stored = {**workload, "metadata": {**workload["metadata"], "uid": "w", "resourceVersion": "1"}}
    objects = [swarm, jobset, namespace, stored, a_child_job(jobset, "workers", 0)]
    plan = planned("create_pod_groups", objects, stored)
    (action,) = plan.actions
    assert action.target.name == "llama-workers-22222222"
    controller = (action.body or {})["metadata"]["ownerReferences"][0]
    assert (controller["kind"], controller["uid"], controller["controller"]) == ("Swarm", UID, True)


def test_its_conditions_are_written_to_its_status() -> None:
    """emit_conditions reports on the Swarm, without the prefix that a Job's conditions have."""
    swarm, jobset, namespace = a_swarm(), its_jobset(), a_namespace()
    workload = planned("create_workload", [swarm, jobset, namespace], jobset).actions[0].body or {}
    stored = {**workload, "metadata": {**workload["metadata"], "uid": "w", "resourceVersion": "1"}}
    plan = planned("emit_conditions", [swarm, jobset, namespace, stored], jobset)
    patch = plan.actions[0]
    assert (patch.verb, patch.target.kind, patch.subresource) == (Verb.PATCH, "Swarm", "status")
    types = [condition["type"] for condition in (patch.body or {})["status"]["conditions"]]
    assert types == ["PodGroupsReady", "PodGroupsScheduled"]


def test_another_controller_s_swarm_is_left_alone() -> None:
    """`spec.managedBy` counts for every kind."""
    jobset = its_jobset()
    loaded = step("create_workload")
    objects = [a_swarm(managedBy="kueue.x-k8s.io/multikueue"), jobset, a_namespace()]
    decision = loaded.plan(loaded.observe(Snapshot(objects), added(jobset).ref), NOW)
    assert decision.reason == Reason.MANAGED_ELSEWHERE


def test_a_sweep_lists_it() -> None:
    """Its objects are root owners; the JobSets that they run as are not."""
    loaded = step("create_workload")
    cluster = Snapshot([a_swarm(), its_jobset(), a_namespace()])
    subjects = [str(subject) for subject in loaded.swept(cluster, "team-a")]
    assert subjects == ["Swarm team-a/llama"]
    assert SWARMS in {listing.resource for listing in loaded.lists}

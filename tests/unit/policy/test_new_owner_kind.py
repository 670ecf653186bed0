"""A kind of owner is one file: a made-up kind is added, and no other file of policy or cluster is touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.cluster.observe.snapshot import Snapshot
from muster.data import FUNCTIONS
from muster.events.parse import Happened, ResourceEvent
from muster.objects import resources
from muster.objects.resources import JOBSETS, Resource
from muster.policy import owners
from muster.policy.model import Plan
from muster.policy.owners.kind import OwnerKind, OwnerObject, OwnerSpec
from muster.runtime.step import Step
from muster.runtime.steps import load_step
from tests.support import builders as b
from tests.support.builders import Object

SWARMS = Resource("example.dev", "v1", "swarms", "Swarm")


class SwarmSpec(OwnerSpec):
    """The spec of a Swarm."""

    managed_by: str = "example.dev/swarm-controller"


class Swarm(OwnerObject):
    """A Swarm, which runs as a JobSet of its name."""

    spec: SwarmSpec = SwarmSpec()


SWARM = OwnerKind(resource=SWARMS, view=Swarm, controller="example.dev/swarm-controller", runs_as=JOBSETS)

UID = "77777777-5d0b-4a52-9a3e-0c6a1f0f2b11"


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The two lists that a new kind is entered in."""
    monkeypatch.setattr(resources, "ALL", {**resources.ALL, (SWARMS.group, SWARMS.kind): SWARMS})
    owners.KINDS.insert(0, SWARM)
    yield
    owners.KINDS.remove(SWARM)


def a_swarm() -> Object:
    """The Swarm `llama`."""
    return b.an_object("example.dev/v1", "Swarm", "llama", UID) | {"spec": {}}


def its_jobset() -> Object:
    """The JobSet that its controller made: four workers."""
    return b.a_jobset(b.a_replicated_job("workers", pods=4), modifiers=[b.owned_by(a_swarm())])


def step(name: str) -> Step:
    """A step loaded after the kind was registered, as at the start of a function."""
    return load_step.__wrapped__(FUNCTIONS / name / "function" / "step.py")


def planned(name: str, objects: list[Object], subject: Object) -> Plan:
    """The plan of a step for an object among others."""
    loaded = step(name)
    decision = loaded.plan(loaded.observe(Snapshot(objects), b.ref(subject)), b.NOW)
    assert isinstance(decision, Plan), decision
    return decision


def test_every_step_knows_it() -> None:
    """The Workload and the conditions are the Swarm's; groups are named after its JobSet."""
    swarm, jobset, namespace = a_swarm(), its_jobset(), b.a_namespace()
    event = ResourceEvent("1", Happened.ADD, b.ref(jobset), jobset)
    assert step("create_workload").predicate(event) == b.ref(jobset)
    (action,) = planned("create_workload", [swarm, jobset, namespace], jobset).actions
    workload = action.body or {}
    assert workload["spec"]["controllerRef"]["kind"] == "Swarm"
    stored = {**workload, "metadata": {**workload["metadata"], "uid": "w", "resourceVersion": "1"}}
    objects = [swarm, jobset, namespace, stored, b.a_child_job(jobset, "workers", 0)]
    (action,) = planned("create_pod_groups", objects, stored).actions
    assert action.target.name == "llama-workers-22222222"
    controller = (action.body or {})["metadata"]["ownerReferences"][0]
    assert (controller["kind"], controller["uid"]) == ("Swarm", UID)
    patch = planned("emit_conditions", [swarm, jobset, namespace, stored], jobset).actions[0]
    assert (patch.target.kind, patch.subresource) == ("Swarm", "status")


def test_a_sweep_lists_it() -> None:
    """Its objects are root owners; the JobSets that they run as are not."""
    loaded = step("create_workload")
    cluster = Snapshot([a_swarm(), its_jobset(), b.a_namespace()])
    assert [str(subject) for subject in loaded.swept(cluster, "team-a")] == ["Swarm team-a/llama"]
    assert SWARMS in {listing.resource for listing in loaded.lists}

"""The step on a recorded event; `pytest --muster-update` writes case/plan.yaml anew."""

from __future__ import annotations

from pathlib import Path

from muster.testing import (
    Case,
    CompareGolden,
    EmbeddedCluster,
    check_laws,
    check_manifests,
    load_step,
    plan_of,
)

FOLDER = Path(__file__).parents[1]
STEP = load_step(FOLDER)
RECORDED = Case.read(FOLDER / "tests" / "case")
"""The PodGroup update of the recording `torch`, at `all bound`."""
RACKS = {"node-1": "rack-1", "node-2": "rack-1", "node-3": "rack-2"}
NODES = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/rack": rack}},
    }
    for name, rack in RACKS.items()
]
CASE = Case.of(RECORDED.event, [*RECORDED.objects, *NODES])


def test_the_plan_is_the_one_that_was_reviewed(muster_golden: CompareGolden) -> None:
    """It is in case/plan.yaml."""
    plan = plan_of(STEP, CASE)
    assert plan.reason == "RacksLabelled"
    muster_golden(plan, "case/plan.yaml")


def test_old_repeated_and_forged_events_change_nothing() -> None:
    """The laws of every step."""
    check_laws(STEP, CASE)


def test_it_writes_on_a_cluster(muster_cluster: EmbeddedCluster) -> None:
    """The step reads, plans and writes as its function does."""
    muster_cluster.load(*CASE.objects)
    answer = muster_cluster.deliver(STEP, CASE.event)
    assert (answer.status, answer.reason, answer.actions) == (200, "RacksLabelled", 1)
    (group,) = muster_cluster.all("PodGroup")
    racks = {name: count for name, count in group["metadata"]["labels"].items() if "racks" in name}
    assert racks == {"racks.example.com/rack-1": "2", "racks.example.com/rack-2": "1"}


def test_until_the_pods_are_bound_the_event_comes_again() -> None:
    """The scheduler writes the status of the group first, and then binds its pods."""
    objects = CASE.copied_objects()
    for pod in (body for body in objects if body["kind"] == "Pod"):
        pod["spec"].pop("nodeName")
    decision = plan_of(STEP, Case.of(CASE.event, objects)).decision
    assert (decision.reason, decision.requeue) == ("AwaitingBindings", True)


def test_the_manifests_fit_the_code() -> None:
    """Its Service, its Trigger, and a role with exactly its permissions."""
    check_manifests(FOLDER)

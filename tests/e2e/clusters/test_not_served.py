"""A cluster whose administrator has not switched the Workload API on, then does, and then no more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.policy.group_labels import GATE
from muster.simulator.apiserver import Gates
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.contract import gates_off
from tests.e2e.conftest import RealStage, Stages
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob, with_policy
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release("1.37", gates=(), apis=()))

RACK = "topology.kubernetes.io/rack"
IN_ONE_RACK = (
    f"workload: {{groups: [{{name: main, schedulingConstraints: {{topology: [{{key: {RACK}}}]}}}}]}}"
)


def _say_why(now: RealStory, *owners: tuple[str, str]) -> bool:
    return all(
        now.reason(*owner, of_type) == "ApiNotServed"
        for owner in owners
        for of_type in ("PodGroupsReady", "PodGroupsScheduled")
    )


def _readiness_says_what_is_missing(stage: RealStage) -> None:
    for name in stage.muster.functions:
        status, words = stage.muster.readiness(name)
        assert status == 200, name
        assert "GenericWorkload" in words
        assert "scheduling.k8s.io/v1beta1" in words


def test_labelled_jobs_run_as_plain_jobs(stage: RealStage, story: RealStory) -> None:
    """The API server drops the group's name but not the gate; Muster lifts it, makes nothing and says why."""
    story.add_nodes(2)
    story.create(a_job("sweep", pods=2))
    story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    story.wait("four pods run", lambda now: now.running() == 4)
    owners = ("Job", "sweep"), ("TrainJob", "llama")
    story.wait("both owners say why", lambda now: _say_why(now, *owners), 90)
    assert stage.muster.idle()
    assert {(write.verb, write.resource) for write in story.writes()} == {
        ("patch", "pods"),
        ("patch", "jobs/status"),
        ("patch", "trainjobs/status"),
        ("create", "events"),
    }
    assert "ApiNotServed" in stage.muster.log("patch-pods")


def test_the_embedded_server_serves_the_same_apis(stage: RealStage) -> None:
    """With its gates off it answers the same."""
    gates = Gates(
        generic_workload=False,
        topology_aware_workload_scheduling=False,
        composite_pod_group=False,
        served=frozenset(),
    )
    assert gates_off.difference(stage.cluster, "all_gates_off", gates) == ""


def test_the_api_is_used_as_long_as_it_is_switched_on(
    stage: RealStage, stages: Stages, begin_story: Callable[..., RealStory]
) -> None:
    """Jobs are gangs from then on; once it is off again, what waits runs as plain Jobs and what runs runs on.

    No function is started again.
    """
    functions = dict(stage.muster.functions)
    stages.switch(Release("1.37"))
    stage.muster.start_adapters()
    story = begin_story()
    hanging = _gangs_run_and_wait(story)
    assert stage.muster.idle()
    bound = story.nodes_of_pods()

    with story.interrupted():
        stages.switch(Release("1.37", gates=()))  # the versions stay switched on: both are needed
    assert stage.muster.idle()
    stage.muster.dead_letters.clear()  # what was sent while the API server was away
    stage.muster.sweep()
    story.wait("all that waited runs", lambda now: len(now.nodes_of_pods()) == 8, 90)
    assert bound.items() <= story.nodes_of_pods().items()
    story.hang([hanging], None)
    story.create(a_job("later", pods=2))
    story.wait("new pods run", lambda now: now.running() == 10 and len(now.ungrouped()) == 3, 120)
    owners = ("TrainJob", "runs"), ("Job", "waits"), ("JobSet", "restarts"), ("Job", "later")
    story.wait("all owners say why", lambda now: _say_why(now, *owners), 90)
    assert "ApiNotServed" in stage.muster.log("patch-pods")
    _readiness_says_what_is_missing(stage)
    assert stage.muster.functions == functions


def _gangs_run_and_wait(story: RealStory) -> Object:
    """A gang of four runs, one of two finds no rack with room for it, and a pod waits, gated, for a restart.

    Returns the old pod for which that restart waits.
    """
    for number in range(2):
        story.add_nodes(1, cpu=16, labels={RACK: f"rack-{number}"})
    story.create(a_trainjob("runs", "torch-distributed", nodes=4))
    story.create(a_jobset("restarts", {"workers": (2, 1)}, max_restarts=1))
    story.wait("six pods run", lambda now: now.running() == 6, 90)
    assert story.policy("trainer") == {"gang": {"minCount": 4}}
    hanging, failing = story.running_of("workers")
    story.hang([hanging])
    story.finish_pods([failing], "Failed")
    story.wait("a new pod is gated", lambda now: any(GATE in now.gates(pod) for pod in now.pods()))

    story.create(with_policy(a_job("waits", pods=2, cpu=9), IN_ONE_RACK))
    story.wait_for_reason("Job", "waits", "PodGroupsScheduled", "Unschedulable", 90)
    story.recording.quiet()
    assert [story.gates(pod) for pod in story.pods()].count({GATE}) == 1
    assert len(story.nodes_of_pods()) == 5
    return hanging

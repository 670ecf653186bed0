"""Kubernetes 1.36.3: scheduling.k8s.io/v1alpha2, whose gangs have a fixed size."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release("1.36"))


def test_a_torch_trainjob_runs_as_one_gang(story: RealStory) -> None:
    """Three nodes are one group of three, bound together, and the TrainJob says so."""
    story.add_nodes(3)
    trainjob = story.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}
    story.wait(
        "conditions say so", lambda now: now.condition("TrainJob", "llama", "PodGroupsScheduled") == "True"
    )
    story.delete(trainjob)
    story.wait("nothing is left", lambda now: not now.leftovers())


def test_an_indexed_job_that_does_not_fit_waits_as_a_whole(story: RealStory) -> None:
    """Nothing is bound and the owner says why; with one more node all are bound."""
    story.add_nodes(3)
    story.create(a_job("big", pods=4, cpu=6))
    story.wait(
        "the owner says why", lambda now: now.reason("Job", "big", "PodGroupsScheduled") == "Unschedulable"
    )
    story.recording.quiet()
    assert not any(pod["spec"].get("nodeName") for pod in story.pods())

    story.add_nodes(1)
    story.wait("four pods run", lambda now: now.running() == 4)


def test_a_job_of_a_gang_cannot_be_scaled(story: RealStory) -> None:
    """The API server refuses it once the Job controls a gang (plugin/pkg/admission/job, in 1.36 alone)."""
    story.add_nodes(2)
    job = story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)

    change = {"spec": {"parallelism": 4, "completions": 4}}
    answer = story.api.request("PATCH", manifests.path(job), change, MERGE_PATCH)
    assert (answer.status, answer.reason) == (403, "Forbidden")
    group = story.group("main")["metadata"]["name"]
    refusal = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{group}"'
    assert answer.message == f'jobs.batch "sweep" is forbidden: {refusal}'

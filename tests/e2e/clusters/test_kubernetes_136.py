"""Kubernetes 1.36.3: scheduling.k8s.io/v1alpha2, whose gangs have a fixed size."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.e2e.conftest import RealStage
from tests.e2e.support.owners import Object, a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release("1.36"))


def test_a_torch_trainjob_runs_as_one_gang(story: RealStory) -> None:
    """Three nodes are one group of three, bound together, and the TrainJob says so."""
    story.add_nodes(3)
    trainjob = story.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}
    story.wait_for_true("TrainJob", "llama", "PodGroupsScheduled")
    story.delete(trainjob)
    story.wait("nothing is left", lambda now: not now.leftovers())


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


def test_a_gang_keeps_its_size_when_a_job_of_its_jobset_is_scaled(story: RealStory, stage: RealStage) -> None:
    """No minCount can change: the new pod runs beside the gang, and the JobSet says why."""
    story.add_nodes(2)
    story.create(a_jobset("sim", {"workers": (1, 2)}))
    story.wait("two pods run", lambda now: now.running() == 2)
    before = story.group("workers")["spec"]

    job = story.recording.now("Job")["sim-workers-0"]
    change = {"spec": {"parallelism": 3, "completions": 3}}
    answer = story.api.request("PATCH", manifests.path({**_JOB, **job}), change, MERGE_PATCH)
    assert answer.status == 200, answer.message
    story.wait("three pods run", lambda now: now.running() == 3)
    story.wait_for_reason("JobSet", "sim", "PodGroupsReady", "GangSizeFixed")
    assert story.condition("JobSet", "sim", "PodGroupsReady") == "True"
    assert stage.muster.idle()
    assert story.group("workers")["spec"] == before


def test_a_replacement_after_others_finished_is_never_placed(story: RealStory) -> None:
    """MinCount cannot fall with the pods that are left, and the Job says that it has to be made anew."""
    story.add_nodes(1)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)

    first, second, _ = sorted(story.pods(), key=lambda pod: pod["metadata"]["name"])
    story.finish_pods([first])
    story.finish_pods([second], "Failed")
    story.wait("it has a replacement", lambda now: len(now.pods()) == 4)
    story.wait_for_reason("Job", "sweep", "PodGroupsScheduled", "GangSizeFixed", 90)
    story.recording.quiet()
    assert story.running() == 1


_JOB: Object = {"apiVersion": "batch/v1", "kind": "Job"}

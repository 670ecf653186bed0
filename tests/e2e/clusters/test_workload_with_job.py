"""The alpha gate WorkloadWithJob, with which the Job controller groups plain Jobs itself."""

from __future__ import annotations

from functools import partial

import pytest

from muster.replay.summary import group_of
from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.cluster.processes import until
from tests.contract.bodies import jobs
from tests.e2e.support.owners import a_job, a_jobset, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
OPTIONS = ClusterOptions(release=Release("1.37", gates=(*DEFAULT_GATES["1.37"], "WorkloadWithJob")))


def test_no_job_is_grouped_by_both(story: RealStory) -> None:
    """A hundred labelled Jobs at once: the Job controller makes each a gang, since schedule-jobs asks for it.

    Without that policy the two race: of a hundred Jobs 12 got a PodGroup from each of them, 78 a Workload of
    Muster's that the Job controller took for its own, 10 a basic group.
    """
    assert_the_job_controller_makes_all_gangs(story)


def test_a_trainjob_is_grouped_by_muster(story: RealStory) -> None:
    """The Job controller looks at Jobs without an owner only."""
    story.add_nodes(2)
    story.create(a_trainjob("llama", "torch-distributed", nodes=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    assert story.policy("trainer") == {"gang": {"minCount": 3}}


def test_a_job_with_scheduling_of_its_own_is_the_job_controllers(story: RealStory) -> None:
    """Its gang is as `spec.scheduling` says, whatever the group label on its template."""
    story.add_nodes(1)
    job = a_job("sweep", pods=3, labels={"muster.dev/group": "main"})
    job["spec"]["scheduling"] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    story.create(job)
    story.wait("three pods run", lambda now: now.running() == 3)
    story.recording.quiet()
    (group,) = story.groups().values()
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert group["metadata"].get("labels") is None


def test_jobs_that_a_jobset_delegates_are_the_job_controllers(story: RealStory) -> None:
    """The annotation names a template of the user's Workload; a group label creates no second group."""
    story.add_nodes(1)
    reference = {"apiGroup": "jobset.x-k8s.io", "kind": "JobSet", "name": "sim"}
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    spec = {"controllerRef": reference, "podGroupTemplates": [template]}
    version = "scheduling.k8s.io/v1beta1"
    story.create({"apiVersion": version, "kind": "Workload", "metadata": {"name": "theirs"}, "spec": spec})
    jobset = a_jobset("sim", {"workers": (1, 2)})
    job = jobset["spec"]["replicatedJobs"][0]["template"]
    job["metadata"] = {"annotations": {"scheduling.k8s.io/group-template-name": "workers"}}
    job["spec"]["template"]["metadata"]["labels"] = {"muster.dev/group": "workers"}
    story.create(jobset)
    story.wait("two pods run", lambda now: now.running() == 2)
    story.recording.quiet()
    (group,) = story.groups().values()
    assert group["metadata"].get("labels") is None
    assert {group_of(pod) for pod in story.pods()} == {group["metadata"]["name"]}
    assert [story.gates(pod) for pod in story.pods()] == [set(), set()]


def test_a_pod_lost_after_a_success_hangs_the_job_controllers_gang_alone(story: RealStory) -> None:
    """kubernetes#142330: its minCount stays 3 with two pods left to run. Muster's follows them."""
    story.add_nodes(2)
    story.create(a_job("theirs", pods=3))
    ours = a_jobset("ours", {"workers": (1, 3)})
    ours["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 20
    story.create(ours)
    story.wait("six pods run", lambda now: now.running() == 6)
    for job in ("theirs", "ours-workers-0"):
        first, second, _ = (pod for pod in story.pods() if pod["metadata"]["labels"][JOB_NAME] == job)
        story.finish_pods([first])
        story.wait("one is done", partial(_has_succeeded, job=job))
        story.finish_pods([second], "Failed")
    story.wait("both lost pods are replaced", lambda now: len(now.pods()) == 8)
    story.wait("the one of Muster's gang runs", lambda now: now.running() == 3)
    story.recording.quiet(3)
    (waiting,) = (pod for pod in story.pods() if not pod["spec"].get("nodeName"))
    assert waiting["metadata"]["labels"][JOB_NAME] == "theirs"
    assert story.groups()[group_of(waiting)]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert "conditions" not in waiting["status"]


def _has_succeeded(story: RealStory, job: str) -> bool:
    return bool(story.recording.now("Job")[job]["status"].get("succeeded"))


OURS = ("app.kubernetes.io/managed-by", "muster")
JOB_NAME = "batch.kubernetes.io/job-name"
JOBS = 100


def job_controller_is_asked(story: RealStory) -> bool:
    """Wait until the policy schedule-jobs sets spec.scheduling of plain Jobs; return whether it does."""

    def sets_scheduling() -> bool:
        stored = story.api.must(
            "POST", jobs(story.namespace), a_job("probe", pods=2), query={"dryRun": "All"}
        )
        return bool(stored["spec"].get("scheduling") == {"schedulingPolicy": {"gang": {}}})

    return until(sets_scheduling, 90)


def groupers(story: RealStory) -> dict[str, set[str]]:
    """Return by Job the creators of its Workloads and its pods' PodGroups: ``muster``, ``upstream``."""
    creators: dict[str, set[str]] = {name: set() for name in story.recording.now("Job")}
    for workload in story.recording.now("Workload").values():
        owner = workload["spec"].get("controllerRef", {}).get("name", "")
        creators.setdefault(owner, set()).add(_creator(workload["metadata"].get("labels") or {}))
    groups = story.groups()
    for pod in story.pods():
        group = groups.get(group_of(pod))
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        if group:
            creators[job].add(_creator(group["metadata"].get("labels") or {}))
    return creators


def made_twice(story: RealStory) -> dict[tuple[str, str], list[str]]:
    """Return the names of Workloads or PodGroups by kind and Job, for Jobs that ever had more than one."""
    names: dict[tuple[str, str], list[str]] = {}
    for entry in story.recording.entries():
        if entry.kind in ("Workload", "PodGroup") and entry.change == "ADDED":
            owners = entry.object["metadata"]["ownerReferences"]
            (job,) = (owner["name"] for owner in owners if owner.get("controller"))
            names.setdefault((entry.kind, job), []).append(entry.name)
    return {kind_and_job: several for kind_and_job, several in names.items() if len(several) > 1}


def scattered(story: RealStory) -> dict[str, set[str]]:
    """Return the groups by Job, for Jobs whose pods are in several groups, in none, or in a missing one."""
    groups_of_jobs: dict[str, set[str]] = {}
    for pod in story.pods():
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        groups_of_jobs.setdefault(job, set()).add(group_of(pod))
    existing = set(story.groups())
    return {
        job: groups for job, groups in groups_of_jobs.items() if len(groups) > 1 or not groups <= existing
    }


def assert_the_job_controller_makes_all_gangs(story: RealStory) -> None:
    """Create a hundred Jobs at once, and assert that each is one gang of the Job controller's, made once."""
    assert job_controller_is_asked(story)
    story.add_nodes(4, cpu=64)
    for number in range(JOBS):
        story.create(a_job(f"job-{number}", pods=2))
    story.wait("all pods run", lambda now: now.running() == 2 * JOBS, 300)
    story.recording.quiet(3)
    makers = groupers(story)
    assert len(makers) == JOBS
    assert {job: creators for job, creators in makers.items() if creators != {"upstream"}} == {}
    assert {group["spec"]["schedulingPolicy"]["gang"]["minCount"] for group in story.groups().values()} == {2}
    assert made_twice(story) == {}
    assert scattered(story) == {}


def _creator(labels: dict[str, str]) -> str:
    return "muster" if labels.get(OURS[0]) == OURS[1] else "upstream"

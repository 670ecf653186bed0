"""Who grouped a Job: Muster, or the Job controller with its alpha gate WorkloadWithJob."""

from __future__ import annotations

from muster.replay.summary import group_of
from tests.cluster.processes import until
from tests.contract.bodies import jobs
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import Story

OURS = ("app.kubernetes.io/managed-by", "muster")


def job_controller_is_asked(story: Story) -> bool:
    """Waits until a plain Job asks the Job controller for a gang; policies are compiled some time later."""

    def asks() -> bool:
        stored = story.api.must(
            "POST", jobs(story.namespace), a_job("probe", pods=2), query={"dryRun": "All"}
        )
        return bool(stored["spec"].get("scheduling") == {"schedulingPolicy": {"gang": {}}})

    return until(asks, 90)


def groupers(story: Story) -> dict[str, set[str]]:
    """Returns for every Job who made its Workloads and its pods' PodGroups: ``muster``, ``upstream``."""
    found: dict[str, set[str]] = {name: set() for name in story.recording.now("Job")}
    for workload in story.recording.now("Workload").values():
        owner = workload["spec"].get("controllerRef", {}).get("name", "")
        found.setdefault(owner, set()).add(_maker(workload["metadata"].get("labels") or {}))
    groups = story.groups()
    for pod in story.pods():
        group = groups.get(group_of(pod))
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        if group:
            found[job].add(_maker(group["metadata"].get("labels") or {}))
    return found


def made_twice(story: Story) -> dict[tuple[str, str], list[str]]:
    """Returns the Jobs that ever had more than one Workload or PodGroup, whether a pod names it or not."""
    made: dict[tuple[str, str], list[str]] = {}
    for entry in story.recording.entries():
        if entry.kind in ("Workload", "PodGroup") and entry.change == "ADDED":
            owners = entry.object["metadata"]["ownerReferences"]
            (job,) = (one["name"] for one in owners if one.get("controller"))
            made.setdefault((entry.kind, job), []).append(entry.name)
    return {whose: names for whose, names in made.items() if len(names) > 1}


def scattered(story: Story) -> dict[str, set[str]]:
    """Returns the Jobs whose pods are in several groups, in none, or in one that does not exist."""
    found: dict[str, set[str]] = {}
    for pod in story.pods():
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        found.setdefault(job, set()).add(group_of(pod))
    there = set(story.groups())
    return {job: groups for job, groups in found.items() if len(groups) > 1 or not groups <= there}


def _maker(labels: dict[str, str]) -> str:
    return "muster" if labels.get(OURS[0]) == OURS[1] else "upstream"

"""Who grouped a Job: Muster, or the Job controller with its alpha gate WorkloadWithJob."""

from __future__ import annotations

from tests.e2e.support import laws
from tests.e2e.support.story import Story

OURS = ("app.kubernetes.io/managed-by", "muster")


def groupers(story: Story) -> dict[str, set[str]]:
    """Returns for every Job who made its Workloads and its pods' PodGroups: ``muster``, ``upstream``."""
    found: dict[str, set[str]] = {name: set() for name in story.recording.now("Job")}
    for workload in story.recording.now("Workload").values():
        owner = workload["spec"].get("controllerRef", {}).get("name", "")
        found.setdefault(owner, set()).add(_maker(workload["metadata"].get("labels") or {}))
    groups = story.groups()
    for pod in story.pods():
        group = groups.get(laws.group_of(pod))
        job = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
        if group:
            found[job].add(_maker(group["metadata"].get("labels") or {}))
    return found


def _maker(labels: dict[str, str]) -> str:
    return "muster" if labels.get(OURS[0]) == OURS[1] else "upstream"

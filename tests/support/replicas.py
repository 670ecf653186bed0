"""JobSets whose replicas are groups of groups: leaders and workers by replicatedJob, or by index 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from muster.objects.scheduling import CompositePodGroup
from muster.policy import group_labels
from muster.policy.model import GroupingFailure, Plan
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.sources import schema
from muster.policy.sources.source import ANNOTATION, PolicySource, PolicySourceKind
from muster.policy.tree.groups import Group
from muster.policy.tree.policy_tree import policy_tree
from muster.policy.tree.validation import validate_tree
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_jobset,
    a_replicated_job,
    observed,
    of_uid,
    template_labelled,
)
from tests.support.planning import Observed, plan_pod_groups, plan_workload, pod_sets_of

PER_JOB = {group_labels.GROUP_PER: "job"}
LED = {group_labels.LEADER_GROUP: "leader", group_labels.LEADER_GROUP_PER: "job"}

POLICY = """
workload:
  groups:
  - name: serve
    schedulingConstraints: {topology: [{key: zone}]}
    groups:
    - name: replica
      per: Job
      schedulingConstraints: {topology: [{key: rack}]}
      groups:
      - name: leader
      - name: workers
        schedulingConstraints: {topology: [{key: host}]}
"""


def two_templates(*, leaders: int = 2, workers: int = 2, **of_workers: Any) -> Object:
    """Return a JobSet with a replicatedJob of leaders and one of four workers, a group per Job of each."""
    leader = a_replicated_job("leader", template_labelled(PER_JOB), pods=1, replicas=leaders, label="leader")
    others = a_replicated_job(
        "workers", template_labelled(PER_JOB), pods=4, replicas=workers, label="workers"
    )
    return a_jobset(leader, {**others, **of_workers})


def one_template(labels: dict[str, str], *, replicas: int = 2, pods: int = 5) -> Object:
    """Return a JobSet of one replicatedJob `node` whose pods are workers, or leaders by these labels."""
    entry = a_replicated_job("node", template_labelled(labels), pods=pods, replicas=replicas, label="workers")
    return a_jobset(entry)


def pod_sets(owner: Object) -> OwnerPodSets:
    """Return the planner's view of a Job or JobSet whose labels a person wrote."""
    if owner["kind"] == "Job":
        return pod_sets_of(Job.read(owner), None, {})
    jobset = JobSet.read(owner)
    return pod_sets_of(jobset, jobset, {})


def tree_of(owner: Object, groups: str, *, kept: bool = False) -> tuple[Group, ...] | GroupingFailure:
    """Return the groups of an owner under `workload: {groups: ...}`, or why they are impossible."""
    policy = schema.parse(f"workload: {{groups: {groups}}}").workload
    assert policy is not None
    tree = policy_tree(pod_sets(owner), policy, "home", kept=kept)
    return tree if isinstance(tree, GroupingFailure) else validate_tree(tree, kept=kept) or tree


def jobs_of(jobset: Object) -> list[Object]:
    """Return all Jobs of a JobSet."""
    return [
        a_child_job(jobset, entry["name"], index)
        for entry in jobset["spec"]["replicatedJobs"]
        for index in range(entry["replicas"])
    ]


def seen(
    owner: Object, policy: Any = POLICY, *, jobs: Iterable[Object] | None = None, **rest: Any
) -> Observed:
    """Return the `Observed` of a JobSet with its Jobs and a policy."""
    if jobs is None:
        jobs = [owner] if owner["kind"] == "Job" else jobs_of(owner)
    sources = (PolicySource(PolicySourceKind.OWNER, ANNOTATION, policy),)
    return observed(owner, jobs=jobs, sources=sources, **rest)


def created(owner: Object, policy: Any = POLICY) -> tuple[Object, list[Object]]:
    """Return the Workload of an owner and its groups, as stored."""
    first = plan_workload(seen(owner, policy), NOW)
    assert isinstance(first, Plan), first
    (workload,) = (dict(action.body) for action in first.actions if action.body)
    workload["metadata"] = {**workload["metadata"], "uid": "44444444-0000", "resourceVersion": "7"}
    second = plan_pod_groups(seen(owner, policy, workload=workload), NOW)
    bodies = (
        [dict(action.body) for action in second.actions if action.body] if isinstance(second, Plan) else []
    )
    for body in bodies:
        of_uid(f"{body['metadata']['name']}-uid")(body)
        body["metadata"]["resourceVersion"] = "1"
    return workload, bodies


def of_kind(kind: str, bodies: Iterable[Object]) -> list[Object]:
    """Return the objects of a kind."""
    return [body for body in bodies if body["kind"] == kind]


def with_groups(owner: Object, policy: Any, stored: tuple[Object, list[Object]], **rest: Any) -> Observed:
    """Return the `Observed` of an owner whose Workload and groups exist."""
    workload, bodies = stored
    composites = tuple(map(CompositePodGroup.read, of_kind("CompositePodGroup", bodies)))
    groups = of_kind("PodGroup", bodies)
    return seen(owner, policy, workload=workload, groups=groups, composites=composites, **rest)


def short(name: str) -> str:
    """Return `workers-1` for `llama-workers-22222222-1`."""
    owner, _, suffix = name.partition("-22222222" if "-22222222" in name else "-33333333")
    return owner.removeprefix("llama-") + suffix


def parents(bodies: Iterable[Object]) -> dict[str, str]:
    """Return the group above each group, "" for a root."""
    return {
        short(body["metadata"]["name"]): short(body["spec"].get("parentCompositePodGroupName", ""))
        for body in bodies
    }


def counts(bodies: Iterable[Object]) -> dict[str, int]:
    """Return the minCount or minGroupCount of each gang."""
    gangs = {short(body["metadata"]["name"]): body["spec"]["schedulingPolicy"].get("gang") for body in bodies}
    return {name: next(iter(gang.values())) for name, gang in gangs.items() if gang}

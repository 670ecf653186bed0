"""The simulated JobSet controller (jobset v0.12.0, pkg/controllers/jobset_controller.go).

Left out: the headless Service and the PersistentVolumeClaims (no pod here needs them), exclusive placement,
TTL, and what is behind alpha gates that are off (InPlaceRestart, RestartJob, ElasticJobSet).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.cluster.port import Object, PatchType
from muster.objects.resources import JOBS, JOBSETS, Resource
from muster.simulator.controllers.fields import condition, controller_of, is_deleting, key_of, labels_of
from muster.simulator.controllers.job_state import finished_type
from muster.simulator.controllers.jobset_failure import decide_failure
from muster.simulator.controllers.jobset_jobs import (
    REPLICATED_JOB,
    RESTART_ATTEMPT,
    child_job,
    child_name,
    resumed,
    with_defaults,
)
from muster.simulator.controllers.jobset_status import (
    COMPLETED,
    IN_ORDER_DONE,
    IN_ORDER_UNDER_WAY,
    RESUMED,
    SUSPENDED,
    all_ready,
    dependencies_met,
    has_started,
    replicated_jobs_status,
    set_condition,
    settle_restarting,
)
from muster.simulator.controllers.loop import Key, Wake
from muster.simulator.controllers.store import View
from muster.simulator.controllers.writes import Create, Delete, Patch, Result, Write, status_patch

MANAGER = "jobset"
MANAGED_BY = "jobset.sigs.k8s.io/jobset-controller"
FINISHED = ("Completed", "Failed")


class JobSetController:
    """Makes the Jobs of a JobSet in their order, suspends, resumes, restarts, and sums up how they do."""

    name = "jobset"
    watches = (JOBSETS, JOBS)

    def wakes(self, resource: Resource, item: Object) -> Iterable[Wake]:
        """A JobSet, and the JobSet of a Job."""
        if resource == JOBSETS:
            yield Wake(key_of(item))
            return
        owner = controller_of(item)
        if owner and owner["kind"] == "JobSet":
            yield Wake((item["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key, view: View, now: float) -> Result:
        """One look at a JobSet and the Jobs it controls."""
        jobset = view.get(JOBSETS, *key)
        if jobset is None or is_deleting(jobset):
            return Result()
        if jobset["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        return sync(jobset, view.controlled(JOBS, jobset["metadata"]["uid"]), now)


@dataclass
class _Children:
    """The Jobs of a JobSet, sorted: of this attempt by how they stand, and those of earlier attempts."""

    active: list[Object] = field(default_factory=list)
    successful: list[Object] = field(default_factory=list)
    failed: list[Object] = field(default_factory=list)
    previous: list[Object] = field(default_factory=list)

    @classmethod
    def of(cls, jobs: Iterable[Object], restarts: int) -> _Children:
        children = cls()
        for job in jobs:
            if int(labels_of(job).get(RESTART_ATTEMPT, "0")) < restarts:
                children.previous.append(job)
            else:
                kind = finished_type(job)
                fate = {"": children.active, "Complete": children.successful, "Failed": children.failed}
                fate[kind].append(job)
        return children

    @property
    def names(self) -> set[str]:
        groups = (self.active, self.successful, self.failed, self.previous)
        return {job["metadata"]["name"] for group in groups for job in group}


def sync(jobset: Object, jobs: list[Object], now: float) -> Result:
    """What one look at a JobSet and its Jobs leads to: Jobs first, the status last."""
    jobset = with_defaults(jobset)
    old: Object = jobset.get("status") or {}
    status: Object = {"restarts": 0, **old}
    children = _Children.of(jobs, status["restarts"])
    status["replicatedJobsStatus"] = replicated_jobs_status(
        jobset, children.active, children.successful, children.failed
    )
    writes = _steer(jobset, children, status, now)
    return Result((*writes, *status_patch(JOBSETS, jobset, status, MANAGER, locked=True)))


def _steer(jobset: Object, children: _Children, status: Object, now: float) -> tuple[Write, ...]:
    """Decide, in the order of the real reconcile; writes conditions into `status`."""
    if any((condition(status.get("conditions"), kind) or {}).get("status") == "True" for kind in FINISHED):
        return _deletions(children.active)
    cleared = _deletions(children.previous)
    suspended = bool(jobset["spec"].get("suspend"))
    if not suspended and all_ready(jobset, status):
        settle_restarting(status, "JobsReady", "all jobs are ready", now)
    if children.failed:
        decide_failure(jobset, children.failed, status, now)
        return cleared
    if children.successful and _succeeded(jobset, children.successful):
        set_condition(status, COMPLETED, now)
        settle_restarting(status, "JobSetCompleted", COMPLETED["message"], now)
        status["terminalState"] = "Completed"
        return cleared
    created = _creations(jobset, children, status, now)
    if suspended:
        turned = _suspensions(children.active)
        set_condition(status, SUSPENDED, now)
        settle_restarting(status, "JobSetSuspended", SUSPENDED["message"], now)
    else:
        turned = _resumptions(jobset, children.active, status, now)
    return (*cleared, *created, *turned)


def _succeeded(jobset: Object, successful: list[Object]) -> bool:
    """Whether the success policy is met (success_policy.go)."""
    policy = jobset["spec"]["successPolicy"]
    targets = policy.get("targetReplicatedJobs") or []
    matching = [job for job in successful if not targets or labels_of(job)[REPLICATED_JOB] in targets]
    if policy["operator"] == "Any":
        return len(matching) >= 1
    wanted = [rjob for rjob in jobset["spec"]["replicatedJobs"] if not targets or rjob["name"] in targets]
    return len(matching) >= sum(int(rjob["replicas"]) for rjob in wanted)


def _creations(jobset: Object, children: _Children, status: Object, now: float) -> tuple[Write, ...]:
    """The Jobs that are missing and may exist by now (reconcileReplicatedJobs)."""
    spec = jobset["spec"]
    running_in_order = _in_order(jobset) and not spec.get("suspend")
    writes: list[Write] = []
    for rjob in spec["replicatedJobs"]:
        if not dependencies_met(jobset, rjob, status):
            continue
        if running_in_order and has_started(rjob, status):
            continue
        writes += _missing(jobset, rjob, children)
        if running_in_order:
            set_condition(status, IN_ORDER_UNDER_WAY, now)
            return tuple(writes)
    if running_in_order:
        set_condition(status, IN_ORDER_DONE, now)
    return tuple(writes)


def _missing(jobset: Object, rjob: Object, children: _Children) -> list[Write]:
    strategy = (jobset["spec"].get("failurePolicy") or {}).get("restartStrategy")
    if children.previous and strategy == "BlockingRecreate":
        return []
    indexes = (
        index for index in range(rjob["replicas"]) if child_name(jobset, rjob, index) not in children.names
    )
    return [
        Create(JOBS, child_job(jobset, rjob, index), MANAGER, failure="JobCreationFailed", owner=jobset)
        for index in indexes
    ]


def _suspensions(active: list[Object]) -> tuple[Write, ...]:
    return tuple(
        Patch(JOBS, job["metadata"]["name"], job["metadata"]["namespace"], body, PatchType.MERGE, MANAGER)
        for job in active
        if not job["spec"].get("suspend")
        for body in ({"metadata": _version(job), "spec": {"suspend": True}},)
    )


def _resumptions(jobset: Object, active: list[Object], status: Object, now: float) -> tuple[Write, ...]:
    """Suspended Jobs whose turn it is go on (resumeJobsIfNecessary)."""
    writes: list[Write] = []
    for rjob in jobset["spec"]["replicatedJobs"]:
        if not dependencies_met(jobset, rjob, status):
            continue
        if _in_order(jobset) and has_started(rjob, status):
            continue
        for job in active:
            if labels_of(job)[REPLICATED_JOB] == rjob["name"] and job["spec"].get("suspend"):
                writes += _resumption(job, rjob)
        if _in_order(jobset):
            set_condition(status, IN_ORDER_UNDER_WAY, now)
            return tuple(writes)
    set_condition(status, RESUMED, now)
    return tuple(writes)


def _resumption(job: Object, rjob: Object) -> list[Write]:
    """Unsuspend one Job with the pod template's mutable fields; a start time would make them immutable."""
    metadata = job["metadata"]
    place = (JOBS, metadata["name"], metadata["namespace"])
    writes: list[Write] = []
    if (job.get("status") or {}).get("startTime"):
        body = {"metadata": _version(job), "status": {"startTime": None}}
        writes.append(Patch(*place, body, PatchType.MERGE, MANAGER, subresource="status"))
    writes.append(Patch(*place, {"spec": resumed(job, rjob)}, PatchType.MERGE, MANAGER))
    return writes


def _deletions(jobs: Iterable[Object]) -> tuple[Write, ...]:
    return tuple(
        Delete(
            JOBS,
            job["metadata"]["name"],
            job["metadata"]["namespace"],
            job["metadata"]["uid"],
            propagation="Foreground",
        )
        for job in jobs
        if not is_deleting(job)
    )


def _in_order(jobset: Object) -> bool:
    return bool(jobset["spec"]["startupPolicy"]["startupPolicyOrder"] == "InOrder")


def _version(job: Object) -> Object:
    return {"resourceVersion": job["metadata"]["resourceVersion"]}

"""The simulated JobSet controller (jobset v0.12.0, pkg/controllers/jobset_controller.go).

Not simulated: the headless Service and PersistentVolumeClaims, exclusive placement, TTL, rules of failure
policies, BlockingRecreate, the coordinator, and alpha feature gates.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.cluster.interface import Object, PatchType
from muster.objects.resources import JOBS, JOBSETS, Resource
from muster.simulator.controllers.fields import condition, controller_of, is_deleting, key_of, labels_of
from muster.simulator.controllers.job.pods import finished_type
from muster.simulator.controllers.jobset.jobs import (
    COMPLETED,
    IN_ORDER_COMPLETED,
    IN_ORDER_IN_PROGRESS,
    REPLICATED_JOB,
    RESTART_ATTEMPT,
    RESUMED,
    SUSPENDED,
    all_ready,
    apply_failure_policy,
    child_job,
    child_name,
    dependencies_met,
    end_restarting,
    has_started,
    replicated_jobs_status,
    resumed,
    set_condition,
    with_defaults,
)
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.writes import Create, Delete, Patch, Result, Write, status_patch

MANAGER = "jobset"
MANAGED_BY = "jobset.sigs.k8s.io/jobset-controller"
FINISHED = ("Completed", "Failed")


class JobSetController:
    """Creates the Jobs of a JobSet in order, suspends, resumes and restarts them, and updates the status."""

    name = "jobset"
    watches: tuple[Resource, ...] = (JOBSETS, JOBS)

    def requests_for(self, resource: Resource, item: Object) -> Iterable[ReconcileRequest]:
        """Return the JobSet, or the JobSet that owns a Job."""
        if resource == JOBSETS:
            yield ReconcileRequest(key_of(item))
            return
        owner = controller_of(item)
        if owner and owner["kind"] == "JobSet":
            yield ReconcileRequest((item["metadata"]["namespace"], owner["name"]))

    def reconcile(self, key: Key, cache: Cache, now: float) -> Result:
        """Sync a JobSet and the Jobs it controls."""
        jobset = cache.get(JOBSETS, *key)
        if jobset is None or is_deleting(jobset):
            return Result()
        if jobset["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        return sync(jobset, cache.controlled(JOBS, jobset["metadata"]["uid"]), now)


@dataclass
class _Children:
    """The Jobs of a JobSet: of the current attempt by state, and `previous` of earlier attempts."""

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
                by_type = {"": children.active, "Complete": children.successful, "Failed": children.failed}
                by_type[finished_type(job)].append(job)
        return children

    @property
    def names(self) -> set[str]:
        groups = (self.active, self.successful, self.failed, self.previous)
        return {job["metadata"]["name"] for group in groups for job in group}


def sync(jobset: Object, jobs: list[Object], now: float) -> Result:
    """Return the writes for a JobSet and its Jobs: Jobs first, the status last."""
    jobset = with_defaults(jobset)
    old: Object = jobset.get("status") or {}
    status: Object = {"restarts": 0, **old}
    children = _Children.of(jobs, status["restarts"])
    status["replicatedJobsStatus"] = replicated_jobs_status(
        jobset, children.active, children.successful, children.failed
    )
    writes = _reconcile(jobset, children, status, now)
    return Result((*writes, *status_patch(JOBSETS, jobset, status, MANAGER, locked=True)))


def _reconcile(jobset: Object, children: _Children, status: Object, now: float) -> tuple[Write, ...]:
    """Return the writes to Jobs, in the order of upstream's reconcile; sets conditions in `status`."""
    if any((condition(status.get("conditions"), kind) or {}).get("status") == "True" for kind in FINISHED):
        return _deletions(children.active)
    deleted = _deletions(children.previous)
    suspended = bool(jobset["spec"].get("suspend"))
    if not suspended and all_ready(jobset, status):
        end_restarting(status, "JobsReady", "all jobs are ready", now)
    if children.failed:
        apply_failure_policy(jobset, children.failed, status, now)
        return deleted
    if children.successful and _success_policy_met(jobset, children.successful):
        set_condition(status, COMPLETED, now)
        end_restarting(status, "JobSetCompleted", COMPLETED["message"], now)
        status["terminalState"] = "Completed"
        return deleted
    created = _creations(jobset, children, status, now)
    if suspended:
        updated = _suspensions(children.active)
        set_condition(status, SUSPENDED, now)
        end_restarting(status, "JobSetSuspended", SUSPENDED["message"], now)
    else:
        updated = _resumptions(jobset, children.active, status, now)
    return (*deleted, *created, *updated)


def _success_policy_met(jobset: Object, successful: list[Object]) -> bool:
    """Whether the success policy is met (success_policy.go)."""
    policy = jobset["spec"]["successPolicy"]
    targets = policy.get("targetReplicatedJobs") or []
    matching = [job for job in successful if not targets or labels_of(job)[REPLICATED_JOB] in targets]
    if policy["operator"] == "Any":
        return len(matching) >= 1
    rjobs = [rjob for rjob in jobset["spec"]["replicatedJobs"] if not targets or rjob["name"] in targets]
    return len(matching) >= sum(int(rjob["replicas"]) for rjob in rjobs)


def _creations(jobset: Object, children: _Children, status: Object, now: float) -> tuple[Write, ...]:
    """Create the missing Jobs whose dependencies and startup order are met (reconcileReplicatedJobs)."""
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
            set_condition(status, IN_ORDER_IN_PROGRESS, now)
            return tuple(writes)
    if running_in_order:
        set_condition(status, IN_ORDER_COMPLETED, now)
    return tuple(writes)


def _missing(jobset: Object, rjob: Object, children: _Children) -> list[Write]:
    indexes = (
        index for index in range(rjob["replicas"]) if child_name(jobset, rjob, index) not in children.names
    )
    return [
        Create(JOBS, child_job(jobset, rjob, index), MANAGER, failure="JobCreationFailed", owner=jobset)
        for index in indexes
    ]


def _suspensions(active: list[Object]) -> tuple[Write, ...]:
    return tuple(
        _patch(job, {"metadata": _version(job), "spec": {"suspend": True}})
        for job in active
        if not job["spec"].get("suspend")
    )


def _patch(job: Object, body: Object, subresource: str = "") -> Patch:
    return Patch(JOBS, job, body, PatchType.MERGE, MANAGER, subresource)


def _resumptions(jobset: Object, active: list[Object], status: Object, now: float) -> tuple[Write, ...]:
    """Resume the suspended Jobs whose dependencies and startup order are met (resumeJobsIfNecessary)."""
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
            set_condition(status, IN_ORDER_IN_PROGRESS, now)
            return tuple(writes)
    set_condition(status, RESUMED, now)
    return tuple(writes)


def _resumption(job: Object, rjob: Object) -> list[Write]:
    """Resume a Job and update its pod template's mutable fields; a startTime would make them immutable."""
    writes: list[Write] = []
    if (job.get("status") or {}).get("startTime"):
        body = {"metadata": _version(job), "status": {"startTime": None}}
        writes.append(_patch(job, body, "status"))
    return [*writes, _patch(job, {"spec": resumed(job, rjob)})]


def _deletions(jobs: Iterable[Object]) -> tuple[Write, ...]:
    return tuple(Delete(JOBS, job, propagation="Foreground") for job in jobs if not is_deleting(job))


def _in_order(jobset: Object) -> bool:
    return bool(jobset["spec"]["startupPolicy"]["startupPolicyOrder"] == "InOrder")


def _version(job: Object) -> Object:
    return {"resourceVersion": job["metadata"]["resourceVersion"]}

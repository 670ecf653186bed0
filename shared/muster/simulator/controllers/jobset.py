"""The simulated JobSet controller (jobset v0.12.0, pkg/controllers/jobset_controller.go).

Not simulated: the headless Service and PersistentVolumeClaims, exclusive placement, TTL, the startup policy
InOrder, rules of failure policies, changed templates at a resumption, BlockingRecreate, the coordinator, and
alpha feature gates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.cluster.interface import Object, PatchType
from muster.objects.resources import JOBS, JOBSETS, Resource
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import (
    condition,
    controller_of,
    controller_reference,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    with_condition,
)
from muster.simulator.controllers.job.pods import finished_type
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.writes import Create, Delete, Patch, Result, Write, status_patch

PREFIX = "jobset.sigs.k8s.io/"
REPLICATED_JOB = PREFIX + "replicatedjob-name"
RESTART_ATTEMPT = PREFIX + "restart-attempt"


def with_defaults(jobset: Object) -> Object:
    """Return a copy with the defaults of the CRD and the mutating webhook (jobset_webhook.go, Default)."""
    jobset = copied(jobset)
    spec = jobset["spec"]
    spec.setdefault("successPolicy", {}).setdefault("operator", "All")
    spec.setdefault("startupPolicy", {}).setdefault("startupPolicyOrder", "AnyOrder")
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for rjob in spec.get("replicatedJobs") or []:
        rjob.setdefault("replicas", 1)
        rjob.setdefault("groupName", "default")
        job_spec = rjob["template"].setdefault("spec", {})
        job_spec.setdefault("completionMode", "Indexed")
        job_spec["template"].setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
    return jobset


def child_name(jobset: Object, rjob: Object, index: int) -> str:
    """Return the name of a child Job: `<jobset>-<replicatedJob>-<index>`."""
    return f"{jobset['metadata']['name']}-{rjob['name']}-{index}"


def child_job(jobset: Object, rjob: Object, index: int) -> Object:
    """Return the Job at an index of a replicatedJob, for the current attempt (constructJob)."""
    template = copied(rjob["template"])
    spec = template["spec"]
    keys = jobset_keys(jobset, rjob, index)
    metadata = template.get("metadata") or {}
    pod = spec["template"]
    pod_metadata = pod.get("metadata") or {}
    pod["metadata"] = {
        **pod_metadata,
        "labels": {**(pod_metadata.get("labels") or {}), **keys},
        "annotations": {**(pod_metadata.get("annotations") or {}), **keys},
    }
    if jobset["spec"]["network"]["enableDNSHostnames"]:
        pod["spec"]["subdomain"] = _subdomain(jobset)
    spec["suspend"] = bool(jobset["spec"].get("suspend"))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": child_name(jobset, rjob, index),
            "namespace": jobset["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **keys},
            "annotations": {**(metadata.get("annotations") or {}), **keys},
            "ownerReferences": [controller_reference(jobset)],
        },
        "spec": spec,
    }


def jobset_keys(jobset: Object, rjob: Object, index: int) -> dict[str, str]:
    """Return the labels of Jobs and pods, which are also their annotations (labelAndAnnotateObject)."""
    metadata = jobset["metadata"]
    rjobs = jobset["spec"]["replicatedJobs"]
    group = [other for other in rjobs if other["groupName"] == rjob["groupName"]]
    path = f"{metadata['namespace']}/{child_name(jobset, rjob, index)}"
    values = {
        "jobset-name": metadata["name"],
        "jobset-uid": metadata["uid"],
        "replicatedjob-name": rjob["name"],
        "replicatedjob-replicas": rjob["replicas"],
        "restart-attempt": (jobset.get("status") or {}).get("restarts", 0),
        "global-replicas": sum(other["replicas"] for other in rjobs),
        "job-index": index,
        "job-key": hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest(),
        "job-global-index": _before(rjobs, rjob) + index,
        "group-name": rjob["groupName"],
        "group-replicas": sum(other["replicas"] for other in group),
        "job-group-index": _before(group, rjob) + index,
    }
    return {PREFIX + key: str(value) for key, value in values.items()}


def _before(rjobs: list[Object], rjob: Object) -> int:
    """Number of Jobs of the replicatedJobs listed before `rjob`."""
    total = 0
    for other in rjobs:
        if other["name"] == rjob["name"]:
            break
        total += other["replicas"]
    return total


def _subdomain(jobset: Object) -> str:
    return str(jobset["spec"]["network"].get("subdomain") or jobset["metadata"]["name"])


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


COMPLETED = _condition("Completed", "True", "AllJobsCompleted", "jobset completed successfully")
SUSPENDED = _condition("Suspended", "True", "SuspendedJobs", "jobset is suspended")
RESUMED = _condition("Suspended", "False", "ResumeJobs", "jobset is resumed")
_COUNTS = ("active", "failed", "ready", "succeeded", "suspended")


def replicated_jobs_status(
    jobset: Object, active: list[Object], successful: list[Object], failed: list[Object]
) -> list[Object]:
    """Return the number of Jobs of each replicatedJob by state; sorted by name descending, as upstream."""
    counts = {rjob["name"]: dict.fromkeys(_COUNTS, 0) for rjob in jobset["spec"]["replicatedJobs"]}
    for job in active:
        count = counts[labels_of(job)[REPLICATED_JOB]]
        status = job.get("status") or {}
        count["ready"] += _is_ready(job, status)
        count["active"] += status.get("active", 0) > 0
        count["suspended"] += bool(job["spec"].get("suspend"))
    for name, jobs in (("succeeded", successful), ("failed", failed)):
        for job in jobs:
            counts[labels_of(job)[REPLICATED_JOB]][name] += 1
    return [{"name": name, **counts[name]} for name in sorted(counts, reverse=True)]


def _is_ready(job: Object, status: Object) -> bool:
    parallelism = int(job["spec"].get("parallelism", 1))
    expected = min(parallelism, int(job["spec"].get("completions", parallelism)))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= expected)


def counts_of(status: Object, name: str) -> Object:
    """Return the counts of a replicatedJob in a JobSet's status; zeros if unset."""
    entries = status.get("replicatedJobsStatus") or []
    return next((entry for entry in entries if entry["name"] == name), dict.fromkeys(_COUNTS, 0))


def all_ready(jobset: Object, status: Object) -> bool:
    """Whether every Job is ready or succeeded (allJobsReady); failed Jobs do not count."""
    expected = sum(rjob["replicas"] for rjob in jobset["spec"]["replicatedJobs"])
    ready = sum(entry["ready"] + entry["succeeded"] for entry in status["replicatedJobsStatus"])
    return bool(expected == ready)


def dependencies_met(jobset: Object, rjob: Object, status: Object) -> bool:
    """Whether all dependsOn entries of a replicatedJob have reached their status (depends_on.go)."""
    replicas = {other["name"]: other["replicas"] for other in jobset["spec"]["replicatedJobs"]}
    for dependency in rjob.get("dependsOn") or []:
        counts = counts_of(status, dependency["name"])
        reached = counts["succeeded"]
        if dependency["status"] != "Complete":
            reached += counts["ready"] + counts["failed"]
        if reached != replicas[dependency["name"]]:
            return False
    return True


def set_condition(status: Object, new: Object, now: float) -> None:
    """Set a condition in a status (updateCondition); a new condition with status False is not added."""
    conditions = status.get("conditions")
    if new["status"] == "True" or condition(conditions, new["type"]):
        status["conditions"] = with_condition(conditions, new, now)


def end_restarting(status: Object, reason: str, message: str, now: float) -> None:
    """Set the condition Restarting to False, if it exists."""
    set_condition(status, _condition("Restarting", "False", reason, message), now)


def apply_failure_policy(jobset: Object, failed: list[Object], status: Object, now: float) -> None:
    """Update `status` for failed Jobs: another restart, or Failed (failure_policy.go)."""
    policy = jobset["spec"].get("failurePolicy")
    first = min(failed, key=lambda job: str(_failure(job)["lastTransitionTime"]))
    restarts = int(status.get("restartsCountTowardsMax", 0))
    if policy is None:
        _fail(status, "FailedJobs", "jobset failed due to one or more job failures", first, now)
    elif restarts >= int(policy.get("maxRestarts", 0)):
        _fail(
            status, "ReachedMaxRestarts", "jobset failed due to reaching max number of restarts", first, now
        )
    else:
        status["restarts"] += 1
        status["restartsCountTowardsMax"] = restarts + 1
        message = _with_job("applying RestartJobSet failure policy action", first)
        set_condition(status, _condition("Restarting", "True", "DefaultFailurePolicy", message), now)


def _fail(status: Object, reason: str, message: str, job: Object, now: float) -> None:
    set_condition(status, _condition("Failed", "True", reason, _with_job(message, job)), now)
    end_restarting(status, "JobSetFailed", "jobset failed", now)
    status["terminalState"] = "Failed"


def _with_job(message: str, job: Object) -> str:
    return f"{message} (first failed job: {job['metadata']['name']})"


def _failure(job: Object) -> Object:
    return condition(job["status"]["conditions"], "Failed") or {"lastTransitionTime": ""}


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
    if any(is_true(status.get("conditions"), kind) for kind in FINISHED):
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
    created = _creations(jobset, children, status)
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


def _creations(jobset: Object, children: _Children, status: Object) -> tuple[Write, ...]:
    """Create the missing Jobs whose dependencies are met (reconcileReplicatedJobs)."""
    return tuple(
        Create(JOBS, child_job(jobset, rjob, index), MANAGER, failure="JobCreationFailed", owner=jobset)
        for rjob in jobset["spec"]["replicatedJobs"]
        if dependencies_met(jobset, rjob, status)
        for index in range(rjob["replicas"])
        if child_name(jobset, rjob, index) not in children.names
    )


def _suspensions(active: list[Object]) -> tuple[Write, ...]:
    return tuple(
        _patch(job, {"metadata": _version(job), "spec": {"suspend": True}})
        for job in active
        if not job["spec"].get("suspend")
    )


def _patch(job: Object, body: Object) -> Patch:
    return Patch(JOBS, job, body, PatchType.MERGE, MANAGER)


def _resumptions(jobset: Object, active: list[Object], status: Object, now: float) -> tuple[Write, ...]:
    """Resume the suspended Jobs whose dependencies are met (resumeJobsIfNecessary)."""
    rjobs = [rjob for rjob in jobset["spec"]["replicatedJobs"] if dependencies_met(jobset, rjob, status)]
    names = {rjob["name"] for rjob in rjobs}
    set_condition(status, RESUMED, now)
    return tuple(
        _patch(job, {"spec": {"suspend": False}})
        for job in active
        if labels_of(job)[REPLICATED_JOB] in names and job["spec"].get("suspend")
    )


def _deletions(jobs: Iterable[Object]) -> tuple[Write, ...]:
    return tuple(Delete(JOBS, job, propagation="Foreground") for job in jobs if not is_deleting(job))


def _version(job: Object) -> Object:
    return {"resourceVersion": job["metadata"]["resourceVersion"]}

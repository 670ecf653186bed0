"""The status of a JobSet: counts of Jobs, conditions, and the check of dependsOn (jobset v0.12.0)."""

from __future__ import annotations

from muster.cluster.interface import Object
from muster.simulator.controllers.fields import condition, labels_of, timestamp
from muster.simulator.controllers.jobset.jobs import REPLICATED_JOB


def _condition(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


COMPLETED = _condition("Completed", "True", "AllJobsCompleted", "jobset completed successfully")
SUSPENDED = _condition("Suspended", "True", "SuspendedJobs", "jobset is suspended")
RESUMED = _condition("Suspended", "False", "ResumeJobs", "jobset is resumed")
IN_ORDER_IN_PROGRESS = _condition(
    "StartupPolicyInProgress",
    "True",
    "InOrderStartupPolicyInProgress",
    "in order startup policy is in progress",
)
IN_ORDER_COMPLETED = _condition(
    "StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted", "in order startup policy has completed"
)
MAX_RESTARTS = "jobset failed due to reaching max number of restarts"
_EXCLUSIVE = {"StartupPolicyInProgress", "StartupPolicyCompleted"}
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


def has_started(rjob: Object, status: Object) -> bool:
    """Whether all Jobs of a replicatedJob are ready or finished (allReplicasStarted)."""
    return bool(_started(counts_of(status, rjob["name"])) == rjob["replicas"])


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
        reached = counts["succeeded"] if dependency["status"] == "Complete" else _started(counts)
        if reached != replicas[dependency["name"]]:
            return False
    return True


def _started(counts: Object) -> int:
    return int(counts["ready"] + counts["failed"] + counts["succeeded"])


def set_condition(status: Object, new: Object, now: float) -> None:
    """Set a condition in a status (updateCondition); a new condition with status False is not added."""
    conditions = list(status.get("conditions") or [])
    old = condition(conditions, new["type"])
    if old is None and new["status"] != "True":
        return
    changed = old is None or old["status"] != new["status"]
    since = timestamp(now) if old is None or changed else old["lastTransitionTime"]
    entry = {**new, "lastTransitionTime": since}
    others = _EXCLUSIVE - {new["type"]} if new["type"] in _EXCLUSIVE else set()
    conditions = [{**other, "status": "False"} if other["type"] in others else other for other in conditions]
    if old is None:
        conditions.append(entry)
    else:
        conditions[[other["type"] for other in conditions].index(new["type"])] = entry
    status["conditions"] = conditions


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

"""The status of a JobSet: how its Jobs stand, its conditions, what dependsOn asks of it (jobset v0.12.0)."""

from __future__ import annotations

from muster.cluster.port import Object
from muster.simulator.controllers.fields import condition, labels_of, timestamp
from muster.simulator.controllers.jobset_jobs import REPLICATED_JOB


def _fixed(kind: str, status: str, reason: str, message: str) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


COMPLETED = _fixed("Completed", "True", "AllJobsCompleted", "jobset completed successfully")
SUSPENDED = _fixed("Suspended", "True", "SuspendedJobs", "jobset is suspended")
RESUMED = _fixed("Suspended", "False", "ResumeJobs", "jobset is resumed")
IN_ORDER_UNDER_WAY = _fixed(
    "StartupPolicyInProgress",
    "True",
    "InOrderStartupPolicyInProgress",
    "in order startup policy is in progress",
)
IN_ORDER_DONE = _fixed(
    "StartupPolicyCompleted",
    "True",
    "InOrderStartupPolicyCompleted",
    "in order startup policy has completed",
)
_EXCLUSIVE = {"StartupPolicyInProgress", "StartupPolicyCompleted"}
_COUNTS = ("active", "failed", "ready", "succeeded", "suspended")


def replicated_jobs_status(
    jobset: Object, active: list[Object], successful: list[Object], failed: list[Object]
) -> list[Object]:
    """How many Jobs of each replicatedJob are in which state; names descending, as upstream sorts them."""
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
    wanted = min(parallelism, int(job["spec"].get("completions", parallelism)))
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= wanted)


def counts_of(status: Object, name: str) -> Object:
    """The counts of one replicatedJob in a JobSet's status; all zero where there are none."""
    known = status.get("replicatedJobsStatus") or []
    return next((entry for entry in known if entry["name"] == name), dict.fromkeys(_COUNTS, 0))


def has_started(rjob: Object, status: Object) -> bool:
    """Whether all Jobs of a replicatedJob are ready or over (allReplicasStarted)."""
    return bool(_started(counts_of(status, rjob["name"])) == rjob["replicas"])


def all_ready(jobset: Object, status: Object) -> bool:
    """Whether every Job is ready or has succeeded (allJobsReady); a failed one does not count here."""
    wanted = sum(rjob["replicas"] for rjob in jobset["spec"]["replicatedJobs"])
    ready = sum(entry["ready"] + entry["succeeded"] for entry in status["replicatedJobsStatus"])
    return bool(wanted == ready)


def dependencies_met(jobset: Object, rjob: Object, status: Object) -> bool:
    """Whether everything a replicatedJob depends on is Ready or Complete (depends_on.go)."""
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
    """Set a condition in a status (updateCondition): one that would begin as False is left out."""
    conditions = list(status.get("conditions") or [])
    found = condition(conditions, new["type"])
    if found is None and new["status"] != "True":
        return
    moved = found is None or found["status"] != new["status"]
    since = timestamp(now) if found is None or moved else found["lastTransitionTime"]
    entry = {**new, "lastTransitionTime": since}
    others = _EXCLUSIVE - {new["type"]} if new["type"] in _EXCLUSIVE else set()
    conditions = [{**one, "status": "False"} if one["type"] in others else one for one in conditions]
    if found is None:
        conditions.append(entry)
    else:
        conditions[[one["type"] for one in conditions].index(new["type"])] = entry
    status["conditions"] = conditions


def settle_restarting(status: Object, reason: str, message: str, now: float) -> None:
    """Turn the condition Restarting to False, where there is one."""
    set_condition(status, _fixed("Restarting", "False", reason, message), now)

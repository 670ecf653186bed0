"""The Jobs of a JobSet with the defaults of the JobSet webhook, and its status (jobset v0.12.0)."""

from __future__ import annotations

import hashlib

from muster.cluster.interface import Object
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import condition, controller_reference, labels_of, timestamp

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


def resumed(job: Object, rjob: Object) -> Object:
    """Return the patch of a Job's spec for resuming: suspend, and five fields of the pod template."""
    stored = job["spec"]["template"]
    desired = rjob["template"]["spec"]["template"]
    metadata: Object = {}
    for name in ("labels", "annotations"):
        values = (desired.get("metadata") or {}).get(name)
        if values:
            metadata[name] = {**((stored.get("metadata") or {}).get(name) or {}), **values}
    pod: Object = {}
    if desired["spec"].get("nodeSelector"):
        pod["nodeSelector"] = {
            **(stored["spec"].get("nodeSelector") or {}),
            **desired["spec"]["nodeSelector"],
        }
    for name in ("tolerations", "schedulingGates"):
        current = stored["spec"].get(name) or []
        added = [entry for entry in desired["spec"].get(name) or [] if entry not in current]
        if added:
            pod[name] = [*current, *added]
    template = {key: value for key, value in (("metadata", metadata), ("spec", pod)) if value}
    return {"suspend": False} | ({"template": template} if template else {})


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
IN_ORDER_IN_PROGRESS = _condition(
    "StartupPolicyInProgress",
    "True",
    "InOrderStartupPolicyInProgress",
    "in order startup policy is in progress",
)
IN_ORDER_COMPLETED = _condition(
    "StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted", "in order startup policy has completed"
)
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

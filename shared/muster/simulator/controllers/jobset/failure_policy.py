"""The failure policy of a JobSet (jobset v0.12.0, pkg/controllers/failure_policy.go)."""

from __future__ import annotations

from contextlib import suppress

from muster.cluster.interface import Object
from muster.patterns import PatternError, has_match
from muster.simulator.controllers.framework.fields import condition, labels_of
from muster.simulator.controllers.jobset.jobs import REPLICATED_JOB
from muster.simulator.controllers.jobset.status import end_restarting, set_condition

RESTART = "RestartJobSet"
RESTART_IGNORING_MAX = "RestartJobSetAndIgnoreMaxRestarts"
_MESSAGES = {
    RESTART: "applying RestartJobSet failure policy action",
    RESTART_IGNORING_MAX: "applying RestartJobSetAndIgnoreMaxRestarts failure policy action",
}


def apply_failure_policy(jobset: Object, failed: list[Object], status: Object, now: float) -> None:
    """Update `status` as the failure policy demands for failed Jobs: Failed, or another restart."""
    policy = jobset["spec"].get("failurePolicy")
    if policy is None:
        _fail(status, "FailedJobs", "jobset failed due to one or more job failures", _first(failed), now)
        return
    rule, job = _first_rule(policy.get("rules") or [], failed)
    action = rule["action"] if rule else RESTART
    if action == "FailJobSet":
        message = "applying FailJobSet failure policy action"
        _fail(status, "FailJobSetFailurePolicyAction", message, job, now)
        return
    restarts = int(status.get("restartsCountTowardsMax", 0))
    if action == RESTART and restarts >= int(policy.get("maxRestarts", 0)):
        message = "jobset failed due to reaching max number of restarts"
        _fail(status, "ReachedMaxRestarts", message, job, now)
        return
    status["restarts"] += 1
    if action == RESTART:
        status["restartsCountTowardsMax"] = restarts + 1
    reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
    new = {
        "type": "Restarting",
        "status": "True",
        "reason": reason,
        "message": _with_job(_MESSAGES[action], job),
    }
    set_condition(status, new, now)


def _fail(status: Object, reason: str, message: str, job: Object, now: float) -> None:
    new = {"type": "Failed", "status": "True", "reason": reason, "message": _with_job(message, job)}
    set_condition(status, new, now)
    end_restarting(status, "JobSetFailed", "jobset failed", now)
    status["terminalState"] = "Failed"


def _with_job(message: str, job: Object) -> str:
    return f"{message} (first failed job: {job['metadata']['name']})"


def _first_rule(rules: list[Object], failed: list[Object]) -> tuple[Object | None, Object]:
    """Return the first rule that matches, or None, and the first failed Job among those it matches."""
    for rule in rules:
        matching = [job for job in failed if _applies(rule, job)]
        if matching:
            return rule, _first(matching)
    return None, _first(failed)


def _applies(rule: Object, job: Object) -> bool:
    failure = _failure(job)
    reasons = rule.get("onJobFailureReasons")
    patterns = rule.get("onJobFailureMessagePatterns")
    targets = rule.get("targetReplicatedJobs")
    return (
        (not reasons or failure["reason"] in reasons)
        and (not patterns or any(_has_match(pattern, failure["message"]) for pattern in patterns))
        and (not targets or labels_of(job)[REPLICATED_JOB] in targets)
    )


def _has_match(pattern: str, message: str) -> bool:
    """Whether a pattern matches; one that is no regular expression does not."""
    with suppress(PatternError):
        return has_match(pattern, message)
    return False


def _first(failed: list[Object]) -> Object:
    """Return the Job that failed first."""
    return min(failed, key=lambda job: str(_failure(job)["lastTransitionTime"]))


def _failure(job: Object) -> Object:
    failure = condition(job["status"]["conditions"], "Failed")
    if failure is None:
        raise LookupError(f"the Job {job['metadata']['name']} has not failed")
    return failure

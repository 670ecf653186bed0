"""Failed pods of a Job: which pods count as failed, podFailurePolicy, and the backoff of replacements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.fields import annotations_of, is_deleting, phase

FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
LONGEST_BACKOFF = 600.0
"""Seconds; MaxJobPodFailureBackOff of kubernetes v1.37.1, pkg/controller/job/job_controller.go."""


@dataclass(frozen=True)
class PodFailureDecision:
    """The effect of a podFailurePolicy on one failed pod.

    Attributes:
        counts: the failure counts towards backoffLimit.
        fails_index: the pod's index fails permanently.
        fails_job: the message with which the whole Job fails; empty if it does not fail.
    """

    counts: bool = True
    fails_index: bool = False
    fails_job: str = ""


def replaces_only_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only after its phase is Failed (podReplacementPolicy)."""
    policy = job["spec"].get("podReplacementPolicy")
    default = "Failed" if job["spec"].get("podFailurePolicy") else "TerminatingOrFailed"
    return bool((policy or default) == "Failed")


def has_failed(pod: Object, job: Object) -> bool:
    """Whether the Job controller counts the pod as failed (isPodFailed, job_controller.go)."""
    if phase(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return is_deleting(pod) and phase(pod) != "Succeeded"


def failure_count(pod: Object) -> int:
    """Number of failures of the pod's index before this pod."""
    text = annotations_of(pod).get(FAILURE_COUNT, "")
    return int(text) if text.isdecimal() else 0


def apply_failure_policy(job: Object, pod: Object) -> PodFailureDecision:
    """Apply the first rule of the Job's podFailurePolicy that matches a failed pod."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules):
        message = _match(rule, pod)
        if not message:
            continue
        if rule["action"] == "FailJob":
            return PodFailureDecision(fails_job=f"{message} matching FailJob rule at index {position}")
        return PodFailureDecision(
            counts=rule["action"] != "Ignore", fails_index=rule["action"] == "FailIndex"
        )
    return PodFailureDecision()


def _match(rule: Object, pod: Object) -> str:
    """Return the message of a rule that matches the pod; empty if it does not match."""
    status = pod.get("status") or {}
    pod_key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if rule.get("onExitCodes"):
        for container in _containers(status):
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if code and _matches_code(rule["onExitCodes"], container["name"], code):
                return f"Container {container['name']} for pod {pod_key} failed with exit code {code}"
        return ""
    for pattern in rule.get("onPodConditions") or []:
        for entry in status.get("conditions") or []:
            if (entry["type"], entry["status"]) == (pattern["type"], pattern.get("status", "True")):
                return f"Pod {pod_key} has condition {entry['type']}"
    return ""


def _containers(status: Object) -> Iterable[Object]:
    return [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]


def _matches_code(requirement: Object, container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    listed = code in requirement["values"]
    return listed if requirement["operator"] == "In" else not listed


class Backoff:
    """The backoff of replacement pods: doubled with each failure since the last success.

    Upstream starts at 10 seconds (DefaultJobPodFailureBackOff); here the first delay is an option, so that
    tests are fast. Times are times of observation, because pod timestamps have a resolution of one second.
    """

    def __init__(self, first: float) -> None:
        self._first = first
        self._failed: dict[str, dict[str, float]] = {}
        self._succeeded: dict[str, set[str]] = {}

    def observe(self, job_uid: str, failed: Iterable[str], succeeded: Iterable[str], now: float) -> None:
        """Record the uids of failed and succeeded pods; each uid counts once."""
        counted = self._succeeded.setdefault(job_uid, set())
        times = self._failed.setdefault(job_uid, {})
        for uid in failed:
            times.setdefault(uid, now)
        new = set(succeeded) - counted
        if new:
            counted |= new
            self._failed[job_uid] = {uid: at for uid, at in times.items() if at >= now}

    def forget(self, job_uid: str) -> None:
        """Drop the records of a Job that finished or was deleted."""
        self._failed.pop(job_uid, None)
        self._succeeded.pop(job_uid, None)

    def remaining(self, job_uid: str, now: float) -> float:
        """Return seconds until the Job may create another pod."""
        times = self._failed.get(job_uid) or {}
        if not times:
            return 0.0
        return self._delay(len(times), max(times.values()), now)

    def remaining_for(self, job_uid: str, pod: Object, now: float) -> float:
        """Return seconds until this failed pod may be replaced, for Jobs with backoffLimitPerIndex."""
        at = (self._failed.get(job_uid) or {}).get(pod["metadata"]["uid"], now)
        return self._delay(failure_count(pod) + 1, at, now)

    def _delay(self, failures: int, last: float, now: float) -> float:
        wait = min(self._first * 2.0 ** min(failures - 1, 20), LONGEST_BACKOFF)
        return max(0.0, last + wait - now)

"""When a pod of a Job counts as failed, what its podFailurePolicy says, and how long a replacement waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.port import Object
from muster.simulator.controllers.fields import annotations_of, is_deleting, phase

FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
LONGEST_BACKOFF = 600.0
"""Seconds; MaxJobPodFailureBackOff of kubernetes v1.37.1, pkg/controller/job/job_controller.go."""


@dataclass(frozen=True)
class Verdict:
    """What a podFailurePolicy makes of one failed pod.

    Attributes:
        counts: the failure counts towards backoffLimit.
        fails_index: the pod's index has failed for good.
        fails_job: why the whole Job fails; empty when it does not.
    """

    counts: bool = True
    fails_index: bool = False
    fails_job: str = ""


def replaces_only_failed(job: Object) -> bool:
    """Whether a terminating pod is replaced only once it is Failed (podReplacementPolicy Failed)."""
    policy = job["spec"].get("podReplacementPolicy")
    default = "Failed" if job["spec"].get("podFailurePolicy") else "TerminatingOrFailed"
    return bool((policy or default) == "Failed")


def has_failed(pod: Object, job: Object) -> bool:
    """Whether the Job controller takes the pod for failed (isPodFailed of job_controller.go)."""
    if phase(pod) == "Failed":
        return True
    if replaces_only_failed(job):
        return False
    return is_deleting(pod) and phase(pod) != "Succeeded"


def failure_count(pod: Object) -> int:
    """How often the pod's index had failed before this pod."""
    text = annotations_of(pod).get(FAILURE_COUNT, "")
    return int(text) if text.isdecimal() else 0


def judge(job: Object, pod: Object) -> Verdict:
    """What the Job's podFailurePolicy says about a failed pod: the first rule that matches."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    for position, rule in enumerate(rules):
        why = _match(rule, pod)
        if not why:
            continue
        if rule["action"] == "FailJob":
            return Verdict(fails_job=f"{why} matching FailJob rule at index {position}")
        return Verdict(counts=rule["action"] != "Ignore", fails_index=rule["action"] == "FailIndex")
    return Verdict()


def _match(rule: Object, pod: Object) -> str:
    status = pod.get("status") or {}
    where = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    if rule.get("onExitCodes"):
        for container in _containers(status):
            code = ((container.get("state") or {}).get("terminated") or {}).get("exitCode")
            if code and _matches_code(rule["onExitCodes"], container["name"], code):
                return f"Container {container['name']} for pod {where} failed with exit code {code}"
        return ""
    for pattern in rule.get("onPodConditions") or []:
        for entry in status.get("conditions") or []:
            if (entry["type"], entry["status"]) == (pattern["type"], pattern.get("status", "True")):
                return f"Pod {where} has condition {entry['type']}"
    return ""


def _containers(status: Object) -> Iterable[Object]:
    return [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]


def _matches_code(requirement: Object, container: str, code: int) -> bool:
    if requirement.get("containerName") not in (None, container):
        return False
    listed = code in requirement["values"]
    return listed if requirement["operator"] == "In" else not listed


class Backoff:
    """How long replacements of failed pods wait: doubled with each failure since the last success.

    The real controller starts at 10 seconds (DefaultJobPodFailureBackOff); here the start is a setting, so
    that a story takes seconds. Times are those of observation: pod timestamps are too coarse for short waits.
    """

    def __init__(self, first: float) -> None:
        self._first = first
        self._failed: dict[str, dict[str, float]] = {}
        self._succeeded: dict[str, set[str]] = {}

    def observe(self, job_uid: str, failed: Iterable[str], succeeded: Iterable[str], now: float) -> None:
        """Note the uids of the pods that failed and succeeded; each counts once."""
        known = self._succeeded.setdefault(job_uid, set())
        times = self._failed.setdefault(job_uid, {})
        for uid in failed:
            times.setdefault(uid, now)
        new = set(succeeded) - known
        if new:
            known |= new
            self._failed[job_uid] = {uid: at for uid, at in times.items() if at >= now}

    def forget(self, job_uid: str) -> None:
        """Drop what is known of a Job that finished or is gone."""
        self._failed.pop(job_uid, None)
        self._succeeded.pop(job_uid, None)

    def remaining(self, job_uid: str, now: float) -> float:
        """Seconds until the Job may make another pod."""
        times = self._failed.get(job_uid) or {}
        if not times:
            return 0.0
        return self._left(len(times), max(times.values()), now)

    def remaining_for(self, job_uid: str, pod: Object, now: float) -> float:
        """Seconds until this failed pod may be replaced, where each index has a limit of its own."""
        at = (self._failed.get(job_uid) or {}).get(pod["metadata"]["uid"], now)
        return self._left(failure_count(pod) + 1, at, now)

    def _left(self, failures: int, last: float, now: float) -> float:
        wait = min(self._first * 2.0 ** min(failures - 1, 20), LONGEST_BACKOFF)
        return max(0.0, last + wait - now)

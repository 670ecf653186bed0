"""The state of a Job computed from its pods, and whether the Job ends (first half of syncJob)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.fields import (
    condition,
    is_deleting,
    is_finished_pod,
    is_true,
    phase,
    seconds,
)
from muster.simulator.controllers.job.failures import (
    FAILURE_COUNT,
    apply_failure_policy,
    failure_count,
    has_failed,
    replaces_only_failed,
)
from muster.simulator.controllers.job.indexes import index_of, parse_indexes
from muster.simulator.controllers.job.pods import by_index, has_finalizer, is_active, is_indexed

INTERIM = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The final condition of a Job, and the interim condition that precedes it."""


@dataclass(frozen=True)
class Finish:
    """The final condition of a Job: type `Complete` or `Failed`, reason and message."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True)
class JobState:
    """The state of a Job's pods.

    Attributes:
        pods: all pods, sorted by index.
        active: pods that are neither finished nor being deleted.
        succeeded: number of succeeded pods, whether already counted in the status or not.
        failed: number of failed pods, likewise.
        succeeded_indexes: empty unless the Job is Indexed.
        failed_indexes: indexes that exceeded backoffLimitPerIndex.
        terminating: number of pods that are being deleted and not finished.
        delayed: by index, the failed pod that keeps its finalizer until it is replaced.
        finish: the final condition; None while the Job runs.
    """

    pods: list[Object]
    active: list[Object]
    succeeded: int
    failed: int
    succeeded_indexes: frozenset[int]
    failed_indexes: frozenset[int]
    terminating: int
    delayed: dict[int, Object]
    finish: Finish | None

    def failure_annotations(self, job: Object, index: int) -> dict[str, str]:
        """Return the annotation that passes the failure count of an index on to its next pod."""
        replaced = self.delayed.get(index)
        count = failure_count(replaced) + apply_failure_policy(job, replaced).counts if replaced else 0
        return {FAILURE_COUNT: str(count)}

    def terminating_indexes(self, job: Object) -> frozenset[int]:
        """Indexes whose terminating pod must be Failed before it is replaced."""
        if not replaces_only_failed(job):
            return frozenset()
        pods = [pod for pod in self.pods if is_deleting(pod) and not is_finished_pod(pod)]
        return frozenset(index for pod in pods if (index := index_of(pod)) is not None)


def finished_type(job: Object) -> str:
    """`Complete` or `Failed`; empty while the Job is unfinished."""
    conditions = (job.get("status") or {}).get("conditions")
    return next((kind for kind in INTERIM if is_true(conditions, kind)), "")


def deadline_left(job: Object, now: float) -> float | None:
    """Return seconds until activeDeadlineSeconds is exceeded; None if unset, not started or suspended."""
    allowed = job["spec"].get("activeDeadlineSeconds")
    started = (job.get("status") or {}).get("startTime")
    if allowed is None or not started or job["spec"].get("suspend"):
        return None
    return seconds(started) + float(allowed) - now


def read_state(job: Object, pods: Iterable[Object], now: float) -> JobState:
    """Compute the state of a Job from its pods, including whether it ends."""
    ordered = by_index(pods)
    status = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    open_pods = [pod for pod in ordered if has_finalizer(pod) and is_valid(job, pod)]
    active = [pod for pod in ordered if is_active(pod)]
    succeeded_indexes, failed_indexes = _finished_indexes(job, open_pods)
    succeeded = len(succeeded_indexes)
    if not is_indexed(job):
        done = uncounted.get("succeeded") or []
        new = [pod for pod in open_pods if phase(pod) == "Succeeded" and pod["metadata"]["uid"] not in done]
        succeeded = status.get("succeeded", 0) + len(done) + len(new)
    counted = uncounted.get("failed") or []
    failing = [
        pod
        for pod in open_pods
        if has_failed(pod, job)
        and pod["metadata"]["uid"] not in counted
        and apply_failure_policy(job, pod).counts
    ]
    failed = status.get("failed", 0) + len(counted) + len(failing)
    return JobState(
        pods=ordered,
        active=active,
        succeeded=succeeded,
        failed=failed,
        succeeded_indexes=succeeded_indexes,
        failed_indexes=failed_indexes,
        terminating=sum(is_deleting(pod) and not is_finished_pod(pod) for pod in ordered),
        delayed=_delayed(job, open_pods, active, succeeded_indexes | failed_indexes),
        finish=_interim_finish(status)
        or _failure(job, ordered, failed, failed_indexes, succeeded_indexes, now)
        or _success(job, succeeded, succeeded_indexes, active),
    )


def is_valid(job: Object, pod: Object) -> bool:
    """Whether the pod counts; the pod of an Indexed Job needs an index below completions."""
    if not is_indexed(job):
        return True
    index = index_of(pod)
    return index is not None and index < int(job["spec"]["completions"])


def _finished_indexes(job: Object, open_pods: list[Object]) -> tuple[frozenset[int], frozenset[int]]:
    if not is_indexed(job):
        return frozenset(), frozenset()
    status = job.get("status") or {}
    completions = int(job["spec"]["completions"])
    succeeded = set(parse_indexes(status.get("completedIndexes", ""), completions))
    failed = set(parse_indexes(status.get("failedIndexes", ""), completions))
    limit = job["spec"].get("backoffLimitPerIndex")
    for pod in open_pods:
        index = index_of(pod)
        if index is None:
            continue
        if phase(pod) == "Succeeded":
            succeeded.add(index)
        if limit is not None and has_failed(pod, job):
            decision = apply_failure_policy(job, pod)
            if decision.fails_index or (decision.counts and failure_count(pod) >= int(limit)):
                failed.add(index)
    return frozenset(succeeded), frozenset(failed)


def _delayed(
    job: Object, open_pods: list[Object], active: list[Object], settled: frozenset[int]
) -> dict[int, Object]:
    if job["spec"].get("backoffLimitPerIndex") is None:
        return {}
    taken = settled | {index_of(pod) for pod in active}
    delayed: dict[int, Object] = {}
    for pod in open_pods:
        index = index_of(pod)
        if index is None or index in taken or not has_failed(pod, job):
            continue
        if index not in delayed or failure_count(delayed[index]) <= failure_count(pod):
            delayed[index] = pod
    return delayed


def _interim_finish(status: Object) -> Finish | None:
    for kind, interim in INTERIM.items():
        entry = condition(status.get("conditions"), interim)
        if entry and entry["status"] == "True":
            return Finish(kind, entry["reason"], entry["message"])
    return None


def _failure(
    job: Object,
    pods: list[Object],
    failed: int,
    failed_indexes: frozenset[int],
    succeeded_indexes: frozenset[int],
    now: float,
) -> Finish | None:
    spec = job["spec"]
    for pod in pods:
        if has_failed(pod, job) and (message := apply_failure_policy(job, pod).fails_job):
            return Finish("Failed", "PodFailurePolicy", message)
    limit = spec.get("backoffLimit", None if "backoffLimitPerIndex" in spec else 6)
    if limit is not None and failed > int(limit):
        return Finish("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = deadline_left(job, now)
    if left is not None and left <= 0:
        return Finish("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if not failed_indexes:
        return None
    maximum = spec.get("maxFailedIndexes")
    if maximum is not None and len(failed_indexes) > int(maximum):
        return Finish(
            "Failed",
            "MaxFailedIndexesExceeded",
            "Job has exceeded the specified maximal number of failed indexes",
        )
    if len(failed_indexes) + len(succeeded_indexes) >= int(spec["completions"]):
        return Finish("Failed", "FailedIndexes", "Job has failed indexes")
    return None


def _success(
    job: Object, succeeded: int, succeeded_indexes: frozenset[int], active: list[Object]
) -> Finish | None:
    completions = job["spec"].get("completions")
    for position, rule in enumerate((job["spec"].get("successPolicy") or {}).get("rules") or []):
        text = rule.get("succeededIndexes")
        indexes = parse_indexes(text, int(completions)) if text else frozenset(range(int(completions)))
        minimum = int(rule.get("succeededCount", len(indexes)))
        if len(indexes & succeeded_indexes) >= minimum:
            return Finish("Complete", "SuccessPolicy", f"Matched rules at index {position}")
    enough = succeeded > 0 if completions is None else succeeded >= int(completions)
    if enough and not active:
        return Finish("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None

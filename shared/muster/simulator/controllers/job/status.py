"""The status of a Job: counts, conditions, and the pods whose finalizer may be removed.

The second half of syncJob (trackJobStatusAndRemoveFinalizers of kubernetes v1.37.1,
pkg/controller/job/job_controller.go): a finished pod is written into the status before its finalizer is
removed, so that each pod is counted exactly once.
"""

from __future__ import annotations

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.fields import (
    condition,
    is_deleting,
    is_true,
    phase,
    timestamp,
    with_condition,
)
from muster.simulator.controllers.job.failures import apply_failure_policy, has_failed
from muster.simulator.controllers.job.indexes import format_indexes, index_of
from muster.simulator.controllers.job.pods import has_finalizer, is_indexed, is_ready
from muster.simulator.controllers.job.state import INTERIM, JobState, is_valid


def next_status(job: Object, state: JobState, now: float) -> tuple[Object, list[Object]]:
    """Return the status to write, and the pods whose finalizer is removed after that.

    Args:
        job: the Job as stored.
        state: the state of its pods.
        now: seconds since the epoch.
    """
    old: Object = job.get("status") or {}
    uncounted, counters = _settled(old, state)
    released = [pod for pod in state.pods if has_finalizer(pod) and _can_remove_finalizer(job, state, pod)]
    for pod in released:
        _add_uncounted(job, state, pod, uncounted)
    status: Object = {**old, **counters, "uncountedTerminatedPods": {k: v for k, v in uncounted.items() if v}}
    if is_indexed(job):
        status["succeeded"] = len(state.succeeded_indexes)
        status["completedIndexes"] = format_indexes(state.succeeded_indexes)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = format_indexes(state.failed_indexes)
    _count_pods(status, state)
    _set_conditions(job, status, state, now)
    if not released and not any(uncounted.values()):
        _set_final_condition(old, status, state, now)
    for name in ("active", "succeeded", "failed", "completedIndexes", "conditions"):
        if not status.get(name):
            status.pop(name, None)
    return status, released


def _settled(old: Object, state: JobState) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Move uncounted pods without finalizer into the counters; return (uncounted, counters)."""
    tracked = {pod["metadata"]["uid"] for pod in state.pods if has_finalizer(pod)}
    uncounted: dict[str, list[str]] = {}
    counters: dict[str, int] = {}
    for kind in ("succeeded", "failed"):
        before = (old.get("uncountedTerminatedPods") or {}).get(kind) or []
        uncounted[kind] = [uid for uid in before if uid in tracked]
        counters[kind] = old.get(kind, 0) + len(before) - len(uncounted[kind])
    return uncounted, counters


def _can_remove_finalizer(job: Object, state: JobState, pod: Object) -> bool:
    """Whether the finalizer may be removed (canRemoveFinalizer)."""
    if is_deleting(job) or state.finish or phase(pod) == "Succeeded":
        return True
    index = index_of(pod)
    waiting = state.delayed.get(index) if index is not None else None
    return has_failed(pod, job) and (waiting or {}).get("metadata") != pod["metadata"]


def _add_uncounted(job: Object, state: JobState, pod: Object, uncounted: dict[str, list[str]]) -> None:
    uid = pod["metadata"]["uid"]
    if phase(pod) == "Succeeded" and uid not in uncounted["failed"]:
        if not is_indexed(job) and uid not in uncounted["succeeded"]:
            uncounted["succeeded"].append(uid)
        return
    job_fails = state.finish is not None and state.finish.type == "Failed"
    counts = has_failed(pod, job) or job_fails
    if (
        counts
        and uid not in uncounted["failed"]
        and is_valid(job, pod)
        and apply_failure_policy(job, pod).counts
    ):
        uncounted["failed"].append(uid)


def _count_pods(status: Object, state: JobState) -> None:
    """Set `active`, `ready` and `terminating`; if the Job ends, its active pods count as terminating."""
    status["active"] = 0 if state.finish else len(state.active)
    status["ready"] = 0 if state.finish else sum(is_ready(pod) for pod in state.active)
    status["terminating"] = state.terminating + (len(state.active) if state.finish else 0)


def _set_conditions(job: Object, status: Object, state: JobState, now: float) -> None:
    suspended = bool(job["spec"].get("suspend"))
    if not status.get("startTime") and not suspended:
        status["startTime"] = timestamp(now)
    conditions = list(status.get("conditions") or [])
    if state.finish:
        interim = INTERIM[state.finish.type]
        if condition(conditions, interim) is None:
            conditions.append(_condition(interim, "True", state.finish.reason, state.finish.message, now))
    elif is_deleting(job):
        return
    elif suspended and not is_true(conditions, "Suspended"):
        new = _condition("Suspended", "True", "JobSuspended", "Job suspended", now)
        conditions = with_condition(conditions, new, now)
        status.pop("startTime", None)
    elif not suspended and is_true(conditions, "Suspended"):
        new = _condition("Suspended", "False", "JobResumed", "Job resumed", now)
        conditions = with_condition(conditions, new, now)
        status["startTime"] = timestamp(now)
    status["conditions"] = conditions


def _set_final_condition(old: Object, status: Object, state: JobState, now: float) -> None:
    """Add the final condition once the interim condition is stored and no pod is terminating."""
    finish = state.finish
    if finish is None or status["terminating"] or not is_true(old.get("conditions"), INTERIM[finish.type]):
        return
    status["conditions"].append(_condition(finish.type, "True", finish.reason, finish.message, now))
    if finish.type == "Complete":
        status["completionTime"] = timestamp(now)


def _condition(kind: str, status: str, reason: str, message: str, now: float) -> Object:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": timestamp(now),
        "lastTransitionTime": timestamp(now),
    }

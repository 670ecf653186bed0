"""The simulated Job controller (kubernetes v1.37.1, pkg/controller/job/job_controller.go).

One difference is meant: a status is written only when no pod has to be made or deleted any more. The real
controller writes what it expects of pods it has just asked for; here the next look, which the answers to
those requests cause, writes what is. Changes of pods are collected as upstream does, for 50 ms, not a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.port import Object, PatchType
from muster.objects.resources import JOBS, PODS, PRIORITY_CLASSES, Resource
from muster.simulator.controllers.fields import controller_of, is_deleting, key_of, phase
from muster.simulator.controllers.job_failures import Backoff, has_failed, replaces_only_failed
from muster.simulator.controllers.job_indexes import first_pending, index_of
from muster.simulator.controllers.job_pods import (
    has_finalizer,
    is_indexed,
    new_pod,
    to_remove,
    without_finalizer,
)
from muster.simulator.controllers.job_state import JobState, deadline_left, finished_type, read_state
from muster.simulator.controllers.job_status import next_status
from muster.simulator.controllers.loop import Key, Wake
from muster.simulator.controllers.store import View
from muster.simulator.controllers.writes import Create, Delete, Patch, Result, Write, soonest, status_patch

MANAGER = "kube-controller-manager"
MANAGED_BY = "kubernetes.io/job-controller"
MOST_AT_ONCE = 500
"""Pods made or deleted in one look (MaxPodCreateDeletePerSync)."""


@dataclass(frozen=True)
class JobOptions:
    """How fast the Job controller is.

    Attributes:
        batch: seconds that changes of pods are collected before the Job is looked at; 1 upstream.
        failure_backoff: seconds before the first replacement of a failed pod; 10 upstream.
    """

    batch: float = 0.05
    failure_backoff: float = 0.1


class JobController:
    """Makes pods for Jobs, replaces failed ones, scales, suspends, and counts what finished."""

    name = "job"
    watches = (JOBS, PODS, PRIORITY_CLASSES)

    def __init__(self, options: JobOptions) -> None:
        self._options = options
        self._backoff = Backoff(options.failure_backoff)

    def wakes(self, resource: Resource, item: Object) -> Iterable[Wake]:
        """A Job at once; a pod's Job after a moment; a pod whose Job let it go, for its finalizer."""
        if resource == JOBS:
            yield Wake((*key_of(item), item["metadata"]["uid"]))
        elif resource == PODS:
            owner = controller_of(item)
            if owner and owner["kind"] == "Job":
                namespace = item["metadata"]["namespace"]
                yield Wake((namespace, owner["name"], owner["uid"]), self._options.batch)
            elif not owner and has_finalizer(item):
                yield Wake(("orphan", *key_of(item)))

    def reconcile(self, key: Key, view: View, now: float) -> Result:
        """One look at a Job, at the pods of a Job that is gone, or at a pod without an owner."""
        if key[0] == "orphan":
            pod = view.get(PODS, key[1], key[2])
            return Result(_releases([pod] if pod and not controller_of(pod) else []))
        namespace, name, uid = key
        pods = view.controlled(PODS, uid)
        job = view.get(JOBS, namespace, name)
        if job is None or job["metadata"]["uid"] != uid or finished_type(job):
            self._backoff.forget(uid)
            return Result(_releases(pods))
        if job["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        self._backoff.observe(
            uid,
            (pod["metadata"]["uid"] for pod in pods if has_failed(pod, job) and has_finalizer(pod)),
            (pod["metadata"]["uid"] for pod in pods if phase(pod) == "Succeeded"),
            now,
        )
        return sync(job, pods, now, self._backoff, _priority(job, view))


def sync(job: Object, pods: list[Object], now: float, backoff: Backoff, priority: int = 0) -> Result:
    """What one look at an unfinished Job and its pods leads to.

    Args:
        job: as stored.
        pods: the pods whose controller is this Job.
        now: seconds since the epoch.
        backoff: what is known of earlier failures.
        priority: what the pods' PriorityClass resolves to.
    """
    state = read_state(job, pods, now)
    if state.finish:
        return _finish(job, state, now)
    changes: tuple[Write, ...] = ()
    again = _deadline(job, now)
    if not is_deleting(job):
        changes, wait = manage(job, state, now, backoff, priority)
        again = soonest(again, wait)
    if changes and (not pods or any(isinstance(change, Delete) for change in changes)):
        return Result(changes, again)
    status, released = next_status(job, state, now)
    written = status_patch(JOBS, job, status, MANAGER, locked=True)
    return Result((*written, *_releases(released), *changes), 0.0 if written or released else again)


def _finish(job: Object, state: JobState, now: float) -> Result:
    """Failure or early success: the pods still active go, keeping their finalizers until they are counted."""
    deletions = tuple(_delete(pod) for pod in state.active)
    status, released = next_status(job, state, now)
    written = status_patch(JOBS, job, status, MANAGER, locked=True)
    return Result((*deletions, *written, *_releases(released)), 0.0 if written or released else None)


def manage(
    job: Object, state: JobState, now: float, backoff: Backoff, priority: int
) -> tuple[tuple[Write, ...], float | None]:
    """The pods to make or to delete (manageJob), and the seconds to wait before a replacement is due."""
    active = state.active
    if job["spec"].get("suspend"):
        return _removals(active), None
    wanted = _wanted(job, state)
    surplus = to_remove(job, active, max(0, len(active) - wanted))[:MOST_AT_ONCE]
    if surplus:
        return _removals(surplus), None
    missing = wanted - len(active) - (state.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return (), None
    uid = job["metadata"]["uid"]
    if job["spec"].get("backoffLimitPerIndex") is None and backoff.remaining(uid, now) > 0:
        return (), backoff.remaining(uid, now)
    return _creations(job, state, min(missing, MOST_AT_ONCE), now, backoff, priority)


def _wanted(job: Object, state: JobState) -> int:
    parallelism = int(job["spec"].get("parallelism", 1))
    completions = job["spec"].get("completions")
    if completions is None:
        return len(state.active) if state.succeeded else parallelism
    return max(0, min(parallelism, int(completions) - state.succeeded))


def _creations(
    job: Object, state: JobState, count: int, now: float, backoff: Backoff, priority: int
) -> tuple[tuple[Write, ...], float | None]:
    if not is_indexed(job):
        return tuple(_create(job, new_pod(job, None, {}, priority)) for _ in range(count)), None
    taken = {index for pod in state.active if (index := index_of(pod)) is not None}
    taken |= state.succeeded_indexes | state.failed_indexes | state.leaving_indexes(job)
    writes: list[Write] = []
    waits: list[float] = []
    for index in first_pending(count, int(job["spec"]["completions"]), taken):
        marks: dict[str, str] = {}
        if job["spec"].get("backoffLimitPerIndex") is not None:
            replaced = state.delayed.get(index)
            wait = backoff.remaining_for(job["metadata"]["uid"], replaced, now) if replaced else 0.0
            if wait > 0:
                waits.append(wait)
                continue
            marks = state.failure_marks(job, index)
        writes.append(_create(job, new_pod(job, index, marks, priority)))
    return tuple(writes), soonest(*waits)


def _create(job: Object, pod: Object) -> Create:
    return Create(PODS, pod, MANAGER, failure="FailedCreate", owner=job)


def _delete(pod: Object) -> Delete:
    namespace, name = key_of(pod)
    return Delete(PODS, name, namespace, pod["metadata"]["uid"])


def _removals(pods: Iterable[Object]) -> tuple[Write, ...]:
    """Pods that are not wanted: freed of the finalizer first, so that none counts as failed."""
    return tuple(write for pod in pods for write in (*_releases([pod]), _delete(pod)))


def _releases(pods: Iterable[Object]) -> tuple[Write, ...]:
    return tuple(
        Patch(
            PODS,
            pod["metadata"]["name"],
            pod["metadata"]["namespace"],
            without_finalizer(pod),
            PatchType.STRATEGIC,
            MANAGER,
        )
        for pod in pods
        if has_finalizer(pod)
    )


def _deadline(job: Object, now: float) -> float | None:
    """Seconds until activeDeadlineSeconds is over; None without one or while the clock does not run."""
    left = deadline_left(job, now)
    return None if left is None else max(0.0, left)


def _priority(job: Object, view: View) -> int:
    spec = job["spec"]["template"]["spec"]
    known = view.get(PRIORITY_CLASSES, "", spec.get("priorityClassName") or "")
    return int(known["value"]) if known else int(spec.get("priority") or 0)

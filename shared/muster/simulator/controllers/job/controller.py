"""The simulated Job controller (kubernetes v1.37.1, pkg/controller/job/job_controller.go).

One deliberate difference: the status is written only when no pod has to be created or deleted any more.
Upstream writes the expected counts in the same sync; here the next sync, caused by the responses, writes the
actual counts. Pod changes are batched as upstream does, for 50 ms instead of a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object, PatchType
from muster.objects.resources import JOBS, PODS, PRIORITY_CLASSES, Resource
from muster.simulator.controllers.framework.cache import CacheReader
from muster.simulator.controllers.framework.fields import controller_of, is_deleting, key_of, phase
from muster.simulator.controllers.framework.worker import Key, ReconcileRequest
from muster.simulator.controllers.framework.writes import (
    Create,
    Delete,
    Patch,
    Result,
    Write,
    soonest,
    status_patch,
)
from muster.simulator.controllers.job.failures import Backoff, has_failed, replaces_only_failed
from muster.simulator.controllers.job.indexes import first_pending, index_of
from muster.simulator.controllers.job.pods import (
    has_finalizer,
    is_indexed,
    new_pod,
    pods_to_delete,
    without_finalizer,
)
from muster.simulator.controllers.job.state import JobState, deadline_left, finished_type, read_state
from muster.simulator.controllers.job.status import next_status

MANAGER = "kube-controller-manager"
MANAGED_BY = "kubernetes.io/job-controller"
MAX_PODS_PER_SYNC = 500
"""Pods created or deleted in one sync (MaxPodCreateDeletePerSync)."""


@dataclass(frozen=True)
class JobOptions:
    """Delays of the Job controller, in seconds.

    Attributes:
        batch: how long pod changes are collected before the Job is synced; 1 upstream.
        failure_backoff: delay before the first replacement of a failed pod; 10 upstream.
    """

    batch: float = 0.05
    failure_backoff: float = 0.1


class JobController:
    """Creates the pods of Jobs, replaces failed pods, scales, suspends, and counts finished pods."""

    name = "job"
    watches = (JOBS, PODS, PRIORITY_CLASSES)

    def __init__(self, options: JobOptions) -> None:
        self._options = options
        self._backoff = Backoff(options.failure_backoff)

    def requests_for(self, resource: Resource, item: Object) -> Iterable[ReconcileRequest]:
        """Return a Job at once, a pod's Job after the batch delay, and an orphaned pod with the finalizer."""
        if resource == JOBS:
            yield ReconcileRequest((*key_of(item), item["metadata"]["uid"]))
        elif resource == PODS:
            owner = controller_of(item)
            if owner and owner["kind"] == "Job":
                namespace = item["metadata"]["namespace"]
                yield ReconcileRequest((namespace, owner["name"], owner["uid"]), self._options.batch)
            elif not owner and has_finalizer(item):
                yield ReconcileRequest(("orphan", *key_of(item)))

    def reconcile(self, key: Key, cache: CacheReader, now: float) -> Result:
        """Sync a Job, the pods of a finished or deleted Job, or an orphaned pod."""
        if key[0] == "orphan":
            pod = cache.get(PODS, key[1], key[2])
            return Result(_remove_finalizers([pod] if pod and not controller_of(pod) else []))
        namespace, name, uid = key
        pods = cache.controlled(PODS, namespace, uid)
        job = cache.get(JOBS, namespace, name)
        if job is None or job["metadata"]["uid"] != uid or finished_type(job):
            self._backoff.forget(uid)
            return Result(_remove_finalizers(pods))
        if job["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        self._backoff.observe(
            uid,
            (pod["metadata"]["uid"] for pod in pods if has_failed(pod, job) and has_finalizer(pod)),
            (pod["metadata"]["uid"] for pod in pods if phase(pod) == "Succeeded"),
            now,
        )
        return sync(job, pods, now, self._backoff, _priority(job, cache))


def sync(job: Object, pods: list[Object], now: float, backoff: Backoff, priority: int = 0) -> Result:
    """Return the writes for an unfinished Job and its pods.

    Args:
        job: the Job as stored.
        pods: the pods whose controller is this Job.
        now: seconds since the epoch.
        backoff: the records of earlier failures.
        priority: the value of the pods' PriorityClass.
    """
    state = read_state(job, pods, now)
    if state.finish:
        return _finish(job, state, now)
    changes: tuple[Write, ...] = ()
    after = _deadline(job, now)
    if not is_deleting(job):
        changes, delay = manage(job, state, now, backoff, priority)
        after = soonest(after, delay)
    if changes and (not pods or any(isinstance(change, Delete) for change in changes)):
        return Result(changes, after)
    status, released = next_status(job, state, now)
    written = status_patch(JOBS, job, status, MANAGER, locked=True)
    return Result((*written, *_remove_finalizers(released), *changes), 0.0 if written or released else after)


def _finish(job: Object, state: JobState, now: float) -> Result:
    """Delete the active pods of a Job that ends; they keep their finalizers until they are counted."""
    deletions = tuple(_delete(pod) for pod in state.active)
    status, released = next_status(job, state, now)
    written = status_patch(JOBS, job, status, MANAGER, locked=True)
    return Result((*deletions, *written, *_remove_finalizers(released)), 0.0 if written or released else None)


def manage(
    job: Object, state: JobState, now: float, backoff: Backoff, priority: int
) -> tuple[tuple[Write, ...], float | None]:
    """Return the pods to create or delete (manageJob), and the seconds until the next replacement is due."""
    active = state.active
    if job["spec"].get("suspend"):
        return _deletions(active), None
    desired = _desired_active(job, state)
    surplus = pods_to_delete(job, active, max(0, len(active) - desired))[:MAX_PODS_PER_SYNC]
    if surplus:
        return _deletions(surplus), None
    missing = desired - len(active) - (state.terminating if replaces_only_failed(job) else 0)
    if missing <= 0:
        return (), None
    uid = job["metadata"]["uid"]
    if job["spec"].get("backoffLimitPerIndex") is None and backoff.remaining(uid, now) > 0:
        return (), backoff.remaining(uid, now)
    return _creations(job, state, min(missing, MAX_PODS_PER_SYNC), now, backoff, priority)


def _desired_active(job: Object, state: JobState) -> int:
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
    taken |= state.succeeded_indexes | state.failed_indexes | state.terminating_indexes(job)
    writes: list[Write] = []
    delays: list[float] = []
    for index in first_pending(count, int(job["spec"]["completions"]), taken):
        annotations: dict[str, str] = {}
        if job["spec"].get("backoffLimitPerIndex") is not None:
            replaced = state.delayed.get(index)
            delay = backoff.remaining_for(job["metadata"]["uid"], replaced, now) if replaced else 0.0
            if delay > 0:
                delays.append(delay)
                continue
            annotations = state.failure_annotations(job, index)
        writes.append(_create(job, new_pod(job, index, annotations, priority)))
    return tuple(writes), soonest(*delays)


def _create(job: Object, pod: Object) -> Create:
    return Create(PODS, pod, MANAGER, failure="FailedCreate", owner=job)


def _delete(pod: Object) -> Delete:
    namespace, name = key_of(pod)
    return Delete(PODS, name, namespace, pod["metadata"]["uid"])


def _deletions(pods: Iterable[Object]) -> tuple[Write, ...]:
    """Delete surplus pods; the finalizer is removed first, so that they do not count as failed."""
    return tuple(write for pod in pods for write in (*_remove_finalizers([pod]), _delete(pod)))


def _remove_finalizers(pods: Iterable[Object]) -> tuple[Write, ...]:
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
    """Return seconds until activeDeadlineSeconds is exceeded, at least 0; None if it does not run."""
    left = deadline_left(job, now)
    return None if left is None else max(0.0, left)


def _priority(job: Object, cache: CacheReader) -> int:
    spec = job["spec"]["template"]["spec"]
    priority_class = cache.get(PRIORITY_CLASSES, "", spec.get("priorityClassName") or "")
    return int(priority_class["value"]) if priority_class else int(spec.get("priority") or 0)

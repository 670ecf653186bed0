"""The simulated Job controller (kubernetes v1.37.1, pkg/controller/job/job_controller.go).

One deliberate difference: the status is written only when no pod has to be created or deleted any more.
Upstream writes the expected counts in the same sync; here the next sync, caused by the responses, writes the
actual counts. Pod changes are batched as upstream does, for 50 ms instead of a second.

Not simulated: deadlines, podFailurePolicy, successPolicy, podReplacementPolicy, backoffLimitPerIndex.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.cluster.interface import Object, PatchType
from muster.objects.resources import JOBS, PODS, PRIORITY_CLASSES, Resource
from muster.simulator.controllers.fields import controller_of, is_deleting, key_of
from muster.simulator.controllers.job.pods import (
    FINALIZER,
    JobState,
    finished_type,
    has_failed,
    has_finalizer,
    index_of,
    is_indexed,
    new_pod,
    next_status,
    pods_to_delete,
    read_state,
)
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.writes import Create, Delete, Patch, Result, Write, status_patch

MANAGER = "kube-controller-manager"
MANAGED_BY = "kubernetes.io/job-controller"


BATCH_SECONDS = 0.05
"""How long changes of pods are collected; 1 upstream."""
BACKOFF_SECONDS = 0.1
"""The wait before a failed pod is replaced; 10 upstream."""


class Backoff:
    """The wait before a failed pod is replaced; unlike upstream it does not grow with each failure."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._failed: dict[str, dict[str, float]] = {}

    def observe(self, job_uid: str, pods: list[Object], now: float) -> None:
        """Record failed pods; each counts once, at the time when it is first seen."""
        times = self._failed.setdefault(job_uid, {})
        for pod in pods:
            if has_failed(pod) and has_finalizer(pod):
                times.setdefault(pod["metadata"]["uid"], now)

    def forget(self, job_uid: str) -> None:
        """Drop the records of a Job that finished or was deleted."""
        self._failed.pop(job_uid, None)

    def remaining(self, job_uid: str, now: float) -> float:
        """Return seconds until the Job may create another pod."""
        return max(
            0.0, max(self._failed.get(job_uid, {}).values(), default=-self._seconds) + self._seconds - now
        )


class JobController:
    """Creates the pods of Jobs, replaces failed pods, scales, suspends, and counts finished pods."""

    name = "job"
    watches: tuple[Resource, ...] = (JOBS, PODS, PRIORITY_CLASSES)

    def __init__(self) -> None:
        self._backoff = Backoff(BACKOFF_SECONDS)

    def requests_for(self, resource: Resource, item: Object) -> Iterable[ReconcileRequest]:
        """Return a Job at once, a pod's Job after the batch delay, and an orphaned pod with the finalizer."""
        if resource == JOBS:
            yield ReconcileRequest((*key_of(item), item["metadata"]["uid"]))
        elif resource == PODS:
            owner = controller_of(item)
            if owner and owner["kind"] == "Job":
                namespace = item["metadata"]["namespace"]
                yield ReconcileRequest((namespace, owner["name"], owner["uid"]), BATCH_SECONDS)
            elif not owner and has_finalizer(item):
                yield ReconcileRequest(("orphan", *key_of(item)))

    def reconcile(self, key: Key, cache: Cache, now: float) -> Result:
        """Sync a Job, the pods of a finished or deleted Job, or an orphaned pod."""
        if key[0] == "orphan":
            pod = cache.get(PODS, key[1], key[2])
            return Result(_remove_finalizers([pod] if pod and not controller_of(pod) else []))
        namespace, name, uid = key
        pods = cache.controlled(PODS, uid)
        job = cache.get(JOBS, namespace, name)
        if job is None or job["metadata"]["uid"] != uid or finished_type(job):
            self._backoff.forget(uid)
            return Result(_remove_finalizers(pods))
        if job["spec"].get("managedBy") not in (None, MANAGED_BY):
            return Result()
        self._backoff.observe(uid, pods, now)
        return sync(job, pods, now, self._backoff, _priority(job, cache))


def sync(job: Object, pods: list[Object], now: float, backoff: Backoff, priority: int = 0) -> Result:
    """Return the writes for an unfinished Job and its pods, whose PriorityClass has this value."""
    state = read_state(job, pods)
    deletions: tuple[Write, ...] = ()
    creations: tuple[Write, ...] = ()
    after: float | None = None
    if state.finish:  # its active pods keep their finalizers until they are counted
        deletions = tuple(Delete(PODS, pod) for pod in state.active)
    elif not is_deleting(job):
        surplus, missing = _manage(job, state)
        if surplus:
            return Result(
                tuple(write for pod in surplus for write in (*_remove_finalizers([pod]), Delete(PODS, pod)))
            )
        after = (backoff.remaining(job["metadata"]["uid"], now) if missing else 0.0) or None
        creations = () if after else tuple(_creations(job, state, missing, priority))
        if creations and not pods:
            return Result(creations)
    status, released = next_status(job, state, now)
    written = status_patch(JOBS, job, status, MANAGER, locked=True)
    writes = (*deletions, *written, *_remove_finalizers(released), *creations)
    return Result(writes, 0.0 if written or released else after)


def _manage(job: Object, state: JobState) -> tuple[list[Object], int]:
    """Return the pods to delete, and the number of pods to create (manageJob)."""
    active = state.active
    if job["spec"].get("suspend"):
        return active, 0
    desired = int(job["spec"].get("parallelism", 1))
    completions = job["spec"].get("completions")
    if completions is not None:
        desired = max(0, min(desired, int(completions) - state.succeeded))
    elif state.succeeded:
        desired = len(active)
    surplus = pods_to_delete(job, active, max(0, len(active) - desired))
    return surplus, 0 if surplus else max(0, desired - len(active))


def _creations(job: Object, state: JobState, count: int, priority: int) -> Iterator[Create]:
    indexes: Iterable[int | None] = [None] * count
    if is_indexed(job):
        taken = {index_of(pod) for pod in state.active} | state.succeeded_indexes
        indexes = [index for index in range(int(job["spec"]["completions"])) if index not in taken][:count]
    for index in indexes:
        yield Create(PODS, new_pod(job, index, priority), MANAGER, failure="FailedCreate", owner=job)


def _remove_finalizers(pods: Iterable[Object]) -> tuple[Write, ...]:
    """Return the patches that remove only the tracking finalizer from pods."""
    return tuple(
        Patch(
            PODS,
            pod,
            {"metadata": {"uid": pod["metadata"]["uid"], "$deleteFromPrimitiveList/finalizers": [FINALIZER]}},
            PatchType.STRATEGIC,
            MANAGER,
        )
        for pod in pods
        if has_finalizer(pod)
    )


def _priority(job: Object, cache: Cache) -> int:
    spec = job["spec"]["template"]["spec"]
    priority_class = cache.get(PRIORITY_CLASSES, "", spec.get("priorityClassName") or "")
    return int(priority_class["value"]) if priority_class else int(spec.get("priority") or 0)

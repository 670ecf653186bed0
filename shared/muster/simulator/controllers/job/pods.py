"""The pods of a Job, and the state and status that follow from them.

The rules are those of kubernetes v1.37.1: pkg/controller/job/{job_controller,indexed_job_utils}.go and
pkg/controller/controller_utils.go. A finished pod is written into the status before its finalizer is removed,
so that each pod is counted exactly once (trackJobStatusAndRemoveFinalizers).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import (
    annotations_of,
    condition,
    controller_reference,
    is_deleting,
    is_finished_pod,
    is_true,
    node_of,
    phase,
    timestamp,
    with_condition,
)

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
FINALIZER = "batch.kubernetes.io/job-tracking"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_PRIORITY = "jobset.sigs.k8s.io/priority"


def is_indexed(job: Object) -> bool:
    """Whether every pod has a completion index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Object) -> int:
    """Return the completion index of a pod; -1 if unset."""
    text = annotations_of(pod).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() else -1


def is_valid(job: Object, pod: Object) -> bool:
    """Whether the pod counts; the pod of an Indexed Job needs an index below completions."""
    return not is_indexed(job) or 0 <= index_of(pod) < int(job["spec"]["completions"])


def parse_indexes(text: str, completions: int) -> set[int]:
    """Parse a text such as `0,3-5` into the indexes below `completions`."""
    indexes: set[int] = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return {index for index in indexes if index < completions}


def format_indexes(indexes: Iterable[int]) -> str:
    """Format a set of indexes: runs of three or more as `first-last`, others separately."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(
        str(first) if first == last else f"{first}{',' if last == first + 1 else '-'}{last}"
        for first, last in runs
    )


def is_active(pod: Object) -> bool:
    """Whether the pod is neither finished nor being deleted."""
    return not is_finished_pod(pod) and not is_deleting(pod)


def has_failed(pod: Object) -> bool:
    """Whether the Job controller counts the pod as failed (isPodFailed)."""
    return phase(pod) == "Failed" or (is_deleting(pod) and phase(pod) != "Succeeded")


def is_ready(pod: Object) -> bool:
    """Whether the pod's condition Ready is True."""
    return is_true((pod.get("status") or {}).get("conditions"), "Ready")


def has_finalizer(pod: Object) -> bool:
    """Whether the pod has the tracking finalizer: it is not counted in the status yet."""
    return FINALIZER in (pod["metadata"].get("finalizers") or [])


def pods_to_delete(job: Object, active: list[Object], at_least: int) -> list[Object]:
    """Return the active pods to delete: duplicate and invalid indexes first, then the least advanced."""
    surplus: list[Object] = []
    rest = sorted(active, key=lambda pod: (bool(node_of(pod)), phase(pod) == "Running", is_ready(pod)))
    if is_indexed(job):
        kept: dict[int, Object] = {}
        for pod in rest:
            if is_valid(job, pod):
                surplus += [kept[index_of(pod)]] if index_of(pod) in kept else []
                kept[index_of(pod)] = pod
            else:
                surplus.append(pod)
        rest = list(kept.values())
    return surplus + rest[: max(0, at_least - len(surplus))]


def new_pod(job: Object, index: int | None, priority: int) -> Object:
    """Return the pod to create for an index, or for a NonIndexed Job.

    JobSet's pod webhook sets the priority as a label, and the Job has the job-name and controller-uid labels.
    """
    template = copied(job["spec"]["template"])
    metadata = template.get("metadata") or {}
    labels, annotations = dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {})
    spec = template["spec"]
    name = generate = job["metadata"]["name"]
    if index is not None:
        annotations[COMPLETION_INDEX] = labels[COMPLETION_INDEX] = str(index)
        spec["hostname"] = generate = f"{name}-{index}"
        _add_index_variable(spec)
    if JOBSET_NAME in labels:
        labels[JOBSET_PRIORITY] = str(priority)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{generate}-",
            "namespace": job["metadata"]["namespace"],
            "labels": labels,
            "annotations": annotations,
            "finalizers": [*(metadata.get("finalizers") or []), FINALIZER],
            "ownerReferences": [controller_reference(job)],
        },
        "spec": spec,
    }


def _add_index_variable(spec: Object) -> None:
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        env = container.get("env") or []
        if all(entry["name"] != "JOB_COMPLETION_INDEX" for entry in env):
            container["env"] = [*env, {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]


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
    """The state of a Job's pods: succeeded and failed count those of the status and those not counted yet."""

    pods: list[Object]
    active: list[Object]
    succeeded: int
    failed: int
    succeeded_indexes: set[int]
    terminating: int
    finish: Finish | None


def finished_type(job: Object) -> str:
    """`Complete` or `Failed`; empty while the Job is unfinished."""
    conditions = (job.get("status") or {}).get("conditions")
    return next((kind for kind in INTERIM if is_true(conditions, kind)), "")


def read_state(job: Object, pods: Iterable[Object]) -> JobState:
    """Compute the state of a Job from its pods, including whether it ends."""
    ordered = sorted(pods, key=index_of)
    status = job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    tracked = [pod for pod in ordered if has_finalizer(pod) and is_valid(job, pod)]
    succeeding = [pod for pod in tracked if phase(pod) == "Succeeded"]
    failing = [pod for pod in tracked if has_failed(pod)]
    succeeded_indexes: set[int] = set()
    succeeded = _total("succeeded", status, uncounted, succeeding)
    if is_indexed(job):
        before = parse_indexes(status.get("completedIndexes", ""), int(job["spec"]["completions"]))
        succeeded_indexes = before | {index_of(pod) for pod in succeeding}
        succeeded = len(succeeded_indexes)
    active = [pod for pod in ordered if is_active(pod)]
    failed = _total("failed", status, uncounted, failing)
    return JobState(
        pods=ordered,
        active=active,
        succeeded=succeeded,
        failed=failed,
        succeeded_indexes=succeeded_indexes,
        terminating=sum(is_deleting(pod) and not is_finished_pod(pod) for pod in ordered),
        finish=_finish(job, status, succeeded, failed, active),
    )


def _total(kind: str, status: Object, uncounted: Object, pods: list[Object]) -> int:
    known = uncounted.get(kind) or []
    return int(status.get(kind, 0)) + len({*known, *(pod["metadata"]["uid"] for pod in pods)})


def _finish(job: Object, status: Object, succeeded: int, failed: int, active: list[Object]) -> Finish | None:
    for kind, interim in INTERIM.items():
        entry = condition(status.get("conditions"), interim)
        if entry and entry["status"] == "True":
            return Finish(kind, entry["reason"], entry["message"])
    if failed > int(job["spec"].get("backoffLimit", 6)):
        return Finish("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    completions = job["spec"].get("completions")
    enough = succeeded > 0 if completions is None else succeeded >= int(completions)
    if enough and not active:
        return Finish("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def next_status(job: Object, state: JobState, now: float) -> tuple[Object, list[Object]]:
    """Return the status to write, and the pods whose finalizer is removed after that."""
    old: Object = job.get("status") or {}
    uncounted, counters = _settled(old, state)
    released = [pod for pod in state.pods if has_finalizer(pod) and _can_remove_finalizer(job, state, pod)]
    for pod in released:
        _add_uncounted(job, state, pod, uncounted)
    status: Object = {**old, **counters, "uncountedTerminatedPods": {k: v for k, v in uncounted.items() if v}}
    if is_indexed(job):
        status["succeeded"] = len(state.succeeded_indexes)
        status["completedIndexes"] = format_indexes(state.succeeded_indexes)
    status["active"] = 0 if state.finish else len(state.active)
    status["ready"] = 0 if state.finish else sum(is_ready(pod) for pod in state.active)
    status["terminating"] = state.terminating + (len(state.active) if state.finish else 0)
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
    return bool(is_deleting(job) or state.finish or phase(pod) == "Succeeded" or has_failed(pod))


def _add_uncounted(job: Object, state: JobState, pod: Object, uncounted: dict[str, list[str]]) -> None:
    uid = pod["metadata"]["uid"]
    if phase(pod) == "Succeeded" and uid not in uncounted["failed"]:
        if not is_indexed(job) and uid not in uncounted["succeeded"]:
            uncounted["succeeded"].append(uid)
        return
    fails = has_failed(pod) or (state.finish is not None and state.finish.type == "Failed")
    if fails and uid not in uncounted["failed"] and is_valid(job, pod):
        uncounted["failed"].append(uid)


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

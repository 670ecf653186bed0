"""The simulated kubelet of every node, following KWOK v0.7.0 and its stages.

A bound pod becomes Running and Ready, a Job's pod may succeed, and a deleted pod is removed, each after a
delay. Annotations set the delay per pod, as Go durations such as `500ms` or `1m30s`:
`pod-complete.stage.kwok.x-k8s.io/delay` and `pod-delete.stage.kwok.x-k8s.io/delay` (KWOK's own), and
`pod-fail.stage.kwok.x-k8s.io/delay`.

It also plays pod garbage collection for an unbound pod that is deleted and held by a finalizer: its phase
becomes Failed (kubernetes v1.37.1, pkg/controller/podgc).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.objects.resources import PODS, Resource
from muster.simulator.controllers.fields import (
    annotations_of,
    controller_of,
    is_deleting,
    is_finished_pod,
    key_of,
    node_of,
    phase,
    timestamp,
)
from muster.simulator.controllers.loop import Cache, Key, ReconcileRequest
from muster.simulator.controllers.writes import Delete, Patch, Result, Write, strategic_status

MANAGER = "kwok"
COMPLETE_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
DELETE_DELAY = "pod-delete.stage.kwok.x-k8s.io/delay"
FAIL_DELAY = "pod-fail.stage.kwok.x-k8s.io/delay"
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_DURATION = re.compile(r"(?:\d++(?:\.\d++)?(?:ms|h|m|s))++")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class KubeletOptions:
    """Delays of the kubelets, in seconds."""

    run_delay: float = 0.05  # from binding to Running and Ready
    complete_after: float | None = None  # from Running to Succeeded, for pods of Jobs; None: never
    delete_delay: float = 0.05  # from deletionTimestamp to removal


def duration(text: str) -> float:
    """Parse a Go duration into seconds."""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is no duration such as 500ms or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


def _next_stage(pod: Object, options: KubeletOptions) -> tuple[str, float] | None:
    """Return the next transition of a pod, and its delay in seconds; None if there is none."""
    if is_deleting(pod):
        if node_of(pod):
            delay = annotations_of(pod).get(DELETE_DELAY)
            return ("delete", duration(delay) if delay else options.delete_delay)
        return None if is_finished_pod(pod) else ("collect", options.delete_delay)
    if not node_of(pod) or is_finished_pod(pod):
        return None
    if phase(pod) != "Running":
        return ("run", options.run_delay)
    annotations = annotations_of(pod)
    if FAIL_DELAY in annotations:
        return ("fail", duration(annotations[FAIL_DELAY]))
    if COMPLETE_DELAY in annotations:
        return ("complete", duration(annotations[COMPLETE_DELAY]))
    owner = controller_of(pod)
    if options.complete_after is None or not owner or owner["kind"] != "Job":
        return None
    return ("complete", options.complete_after)


class KubeletController:
    """Simulates the kubelets of all nodes."""

    name = "kubelet"
    watches: tuple[Resource, ...] = (PODS,)

    def __init__(self, options: KubeletOptions) -> None:
        self._options = options
        self._since: dict[str, tuple[str, float]] = {}
        self._addresses = itertools.count(1)

    def requests_for(self, _resource: Resource, item: Object) -> Iterable[ReconcileRequest]:
        """Return the pod."""
        yield ReconcileRequest(key_of(item))

    def reconcile(self, key: Key, cache: Cache, now: float) -> Result:
        """Apply the next stage of a pod once its delay since the stage was first observed is over."""
        pod = cache.get(PODS, *key)
        next_stage = _next_stage(pod, self._options) if pod else None
        if pod is None or next_stage is None:
            return Result()
        uid, (stage, delay) = pod["metadata"]["uid"], next_stage
        name, since = self._since.get(uid, ("", now))
        if name != stage:
            since = now
            self._since[uid] = (stage, now)
        if since + delay > now:
            return Result(requeue_after=since + delay - now)
        self._since.pop(uid, None)
        match stage:
            case "run":
                status = running(pod, next(self._addresses), now)
            case "complete":
                status = terminated(pod, "Succeeded", now)
            case "fail":
                status = terminated(pod, "Failed", now)
            case "collect":
                status = {"phase": "Failed"}
            case _:
                return Result(_deletion(pod, now))
        return Result((_status(pod, status),))


def running(pod: Object, number: int, now: float) -> Object:
    """Return the status of a running and ready pod; `number` makes its IP address."""
    since = timestamp(now)
    address = f"10.0.{number // 254 % 256}.{number % 254 + 1}"
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [_true_condition(kind, since) for kind in ("Initialized", "Ready", "ContainersReady")],
        "containerStatuses": [
            {**_container_status(container), "ready": True, "state": {"running": {"startedAt": since}}}
            for container in pod["spec"]["containers"]
        ],
    }


def terminated(pod: Object, final_phase: str, now: float) -> Object:
    """Return the status of a pod whose containers terminated: Succeeded (exit code 0) or Failed (1)."""
    at = timestamp(now)
    succeeded = final_phase == "Succeeded"
    state = {
        "exitCode": 0 if succeeded else 1,
        "reason": "Completed" if succeeded else "Error",
        "startedAt": (pod.get("status") or {}).get("startTime", at),
        "finishedAt": at,
    }
    return {
        "phase": final_phase,
        "containerStatuses": [
            {**_container_status(container), "ready": False, "started": False, "state": {"terminated": state}}
            for container in pod["spec"]["containers"]
        ],
    }


def _deletion(pod: Object, now: float) -> tuple[Write, ...]:
    """Delete the pod; a pod held by a finalizer gets a terminal phase first."""
    delete = Delete(PODS, pod, grace_seconds=0)
    if not pod["metadata"].get("finalizers"):
        return (delete,)
    if not is_finished_pod(pod):
        return (_status(pod, terminated(pod, "Failed", now)), delete)
    return () if pod["metadata"].get("deletionGracePeriodSeconds") == 0 else (delete,)


def _container_status(container: Object) -> Object:
    named = {"name": container["name"], "image": container.get("image", "")}
    return {**named, "imageID": "", "lastState": {}, "restartCount": 0}


def _true_condition(kind: str, since: str) -> Object:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": since}


def _status(pod: Object, status: Object) -> Patch:
    return strategic_status(PODS, pod, status, MANAGER)

"""The simulated kubelet of every node, following KWOK v0.7.0 and its stages.

A bound pod becomes Running and Ready, a Job's pod may succeed, and a deleted pod is removed, each after a
delay. KWOK's annotations set the delay per pod, as Go durations such as `500ms` or `2s`:
`pod-complete.stage.kwok.x-k8s.io/delay` and `pod-delete.stage.kwok.x-k8s.io/delay`. Without the former a pod
runs until it is deleted.

Statuses of containers and addresses are left out.

It also plays pod garbage collection for an unbound pod that is deleted and held by a finalizer: its phase
becomes Failed (kubernetes v1.37.1, pkg/controller/podgc).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import Object
from muster.objects.resources import PODS, Resource
from muster.simulator.controllers.fields import (
    annotations_of,
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
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class KubeletOptions:
    """Delays of the kubelets, in seconds."""

    run_delay: float = 0.05  # from binding to Running and Ready
    delete_delay: float = 0.05  # from deletionTimestamp to removal


def duration(text: str) -> float:
    """Parse a Go duration of one unit into seconds."""
    number = text.rstrip("hms")
    return float(number) * _UNITS[text.removeprefix(number)]


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
    delay = annotations_of(pod).get(COMPLETE_DELAY)
    return ("complete", duration(delay)) if delay else None


class KubeletController:
    """Simulates the kubelets of all nodes."""

    name = "kubelet"
    watches: tuple[Resource, ...] = (PODS,)

    def __init__(self, options: KubeletOptions) -> None:
        self._options = options
        self._since: dict[str, tuple[str, float]] = {}

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
        if stage == "delete":
            return Result(_deletion(pod))
        statuses = {"run": _running(now), "complete": {"phase": "Succeeded"}, "collect": {"phase": "Failed"}}
        return Result((_status(pod, statuses[stage]),))


def _running(now: float) -> Object:
    since = timestamp(now)
    true = {"status": "True", "lastProbeTime": None, "lastTransitionTime": since}
    conditions = [{"type": kind, **true} for kind in ("Initialized", "Ready", "ContainersReady")]
    return {"phase": "Running", "startTime": since, "conditions": conditions}


def _deletion(pod: Object) -> tuple[Write, ...]:
    """Delete the pod; a pod held by a finalizer gets a terminal phase first."""
    delete = Delete(PODS, pod, grace_seconds=0)
    if not pod["metadata"].get("finalizers"):
        return (delete,)
    if not is_finished_pod(pod):
        return (_status(pod, {"phase": "Failed"}), delete)
    return () if pod["metadata"].get("deletionGracePeriodSeconds") == 0 else (delete,)


def _status(pod: Object, status: Object) -> Patch:
    return strategic_status(PODS, pod, status, MANAGER)

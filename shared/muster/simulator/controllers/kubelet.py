"""The simulated kubelet of every node, in the manner of KWOK v0.7.0 and its stages.

A bound pod runs and is ready after a moment; a Job's pod succeeds after a while; a pod being deleted goes
after a moment. Annotations change that pod by pod: `pod-complete.stage.kwok.x-k8s.io/delay` and
`pod-delete.stage.kwok.x-k8s.io/delay` (KWOK's own), and `pod-fail.stage.kwok.x-k8s.io/delay`, Go durations
such as `500ms` or `1m30s`.

It also does what pod garbage collection does for a pod that is deleted before it was bound and that a
finalizer holds: its phase becomes Failed (kubernetes v1.37.1, pkg/controller/podgc).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.port import Object, PatchType
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
from muster.simulator.controllers.loop import Key, Wake
from muster.simulator.controllers.store import View
from muster.simulator.controllers.writes import Delete, Patch, Result, Write

MANAGER = "kwok"
COMPLETE_DELAY = "pod-complete.stage.kwok.x-k8s.io/delay"
DELETE_DELAY = "pod-delete.stage.kwok.x-k8s.io/delay"
FAIL_DELAY = "pod-fail.stage.kwok.x-k8s.io/delay"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True)
class KubeletOptions:
    """How fast the kubelets are, in seconds.

    Attributes:
        run_delay: from binding to Running and Ready.
        complete_after: from Running to Succeeded, for pods of Jobs; None: they run until they are deleted.
        delete_delay: from the deletion to the end of a pod.
    """

    run_delay: float = 0.05
    complete_after: float | None = None
    delete_delay: float = 0.05


@dataclass(frozen=True)
class Stage:
    """What happens to a pod next, and after how many seconds."""

    name: str
    delay: float


def duration(text: str) -> float:
    """A Go duration in seconds.

    Raises:
        ValueError: the text is no duration.
    """
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise ValueError(f"{text!r} is no duration such as 500ms or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def next_stage(pod: Object, options: KubeletOptions) -> Stage | None:
    """What a kubelet will do with this pod as it is; None: nothing."""
    if is_deleting(pod):
        if node_of(pod):
            delay = annotations_of(pod).get(DELETE_DELAY)
            return Stage("delete", duration(delay) if delay else options.delete_delay)
        return None if is_finished_pod(pod) else Stage("collect", options.delete_delay)
    if not node_of(pod) or is_finished_pod(pod):
        return None
    if phase(pod) != "Running":
        return Stage("run", options.run_delay)
    given = annotations_of(pod)
    if FAIL_DELAY in given:
        return Stage("fail", duration(given[FAIL_DELAY]))
    if COMPLETE_DELAY in given:
        return Stage("complete", duration(given[COMPLETE_DELAY]))
    owner = controller_of(pod)
    if options.complete_after is None or not owner or owner["kind"] != "Job":
        return None
    return Stage("complete", options.complete_after)


class KubeletController:
    """Plays the kubelets of all nodes."""

    name = "kubelet"
    watches = (PODS,)

    def __init__(self, options: KubeletOptions) -> None:
        self._options = options
        self._since: dict[str, tuple[str, float]] = {}
        self._addresses = itertools.count(1)

    def wakes(self, _resource: Resource, item: Object) -> Iterable[Wake]:
        """Every pod."""
        yield Wake(key_of(item))

    def reconcile(self, key: Key, view: View, now: float) -> Result:
        """Move a pod on when its time has come, counted from when its next stage was first seen."""
        pod = view.get(PODS, *key)
        stage = next_stage(pod, self._options) if pod else None
        if pod is None or stage is None:
            return Result()
        uid = pod["metadata"]["uid"]
        name, since = self._since.get(uid, ("", now))
        if name != stage.name:
            since = now
            self._since[uid] = (stage.name, now)
        left = since + stage.delay - now
        if left > 0:
            return Result(again=left)
        self._since.pop(uid, None)
        return Result(self._play(stage.name, pod, now))

    def _play(self, stage: str, pod: Object, now: float) -> tuple[Write, ...]:
        if stage == "run":
            return (_status(pod, running(pod, next(self._addresses), now)),)
        if stage == "complete":
            return (_status(pod, ended(pod, "Succeeded", now)),)
        if stage == "fail":
            return (_status(pod, ended(pod, "Failed", now)),)
        if stage == "collect":
            return (_status(pod, {"phase": "Failed"}),)
        return _deletion(pod, now)


def running(pod: Object, number: int, now: float) -> Object:
    """The status of a pod that has begun to run."""
    since = timestamp(now)
    address = f"10.0.{number // 254 % 256}.{number % 254 + 1}"
    return {
        "phase": "Running",
        "startTime": since,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [_true(kind, since) for kind in ("Initialized", "Ready", "ContainersReady")],
        "containerStatuses": [
            {**_container(container), "ready": True, "state": {"running": {"startedAt": since}}}
            for container in pod["spec"]["containers"]
        ],
    }


def ended(pod: Object, kind: str, now: float) -> Object:
    """The status of a pod whose containers are done: `kind` is Succeeded (exit code 0) or Failed (1)."""
    at = timestamp(now)
    good = kind == "Succeeded"
    terminated = {
        "exitCode": 0 if good else 1,
        "reason": "Completed" if good else "Error",
        "startedAt": (pod.get("status") or {}).get("startTime", at),
        "finishedAt": at,
    }
    return {
        "phase": kind,
        "containerStatuses": [
            {**_container(container), "ready": False, "started": False, "state": {"terminated": terminated}}
            for container in pod["spec"]["containers"]
        ],
    }


def _deletion(pod: Object, now: float) -> tuple[Write, ...]:
    """The end of a pod: a terminal phase first where a finalizer lets others still see it."""
    namespace, name = key_of(pod)
    last = Delete(PODS, name, namespace, pod["metadata"]["uid"], grace_seconds=0)
    if not pod["metadata"].get("finalizers"):
        return (last,)
    if not is_finished_pod(pod):
        return (_status(pod, ended(pod, "Failed", now)), last)
    return () if pod["metadata"].get("deletionGracePeriodSeconds") == 0 else (last,)


def _container(container: Object) -> Object:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "lastState": {},
        "restartCount": 0,
    }


def _true(kind: str, since: str) -> Object:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": since}


def _status(pod: Object, status: Object) -> Patch:
    namespace, name = key_of(pod)
    body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
    return Patch(PODS, name, namespace, body, PatchType.STRATEGIC, MANAGER, subresource="status")

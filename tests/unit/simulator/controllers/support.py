"""Builders and recorded objects for the tests of the simulated controllers."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

from muster.cluster.interface import Object
from muster.objects import yaml_files

RECORDED = Path(__file__).parent / "recorded"
NOW = 1_800_000_000.0
_numbers = itertools.count(1)


def recorded(name: str) -> list[Any]:
    """The documents of a file under recorded/."""
    return list(yaml_files.load_all((RECORDED / f"{name}.yaml").read_text()))


def recorded_object(name: str, kind: str, like: str = "") -> Object:
    """The recorded object of a kind whose name contains `like`."""
    return next(item for item in recorded(name) if item["kind"] == kind and like in item["metadata"]["name"])


def an_object(api_version: str, kind: str, name: str, spec: Object, **metadata: Any) -> Object:
    """An object as the API server stores it, in namespace `team-a`."""
    number = next(_numbers)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"{kind.lower()}-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": "2027-01-15T08:00:00Z",
            **metadata,
        },
        "spec": spec,
    }


def a_job() -> Object:
    """An Indexed Job of three pods."""
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [{"name": "main"}]}}
    size = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimit": 6}
    return an_object("batch/v1", "Job", "sweep", {**size, "template": template})


def a_pod_of(job: Object, index: int, phase: str) -> Object:
    """A bound pod of a Job that was not counted yet."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, "name": job["metadata"]["name"]}
    pod = an_object(
        "v1",
        "Pod",
        f"{job['metadata']['name']}-{index}-{next(_numbers):05}",
        {"nodeName": "node-1", "containers": [{"name": "main"}]},
        annotations={"batch.kubernetes.io/job-completion-index": str(index)},
        finalizers=["batch.kubernetes.io/job-tracking"],
        ownerReferences=[{**owner, "uid": job["metadata"]["uid"]}],
    )
    conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    return {**pod, "status": {"phase": phase, "conditions": conditions}}


def changed(item: Object, **status: Any) -> Object:
    """A copy of an object with these fields in its status."""
    return {**copy.deepcopy(item), "status": {**(item.get("status") or {}), **status}}


def merge(target: Any, patch: Any) -> Any:
    """What a JSON merge patch (RFC 7386) makes of a value."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merge(result.get(name), value)
    return result

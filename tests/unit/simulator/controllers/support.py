"""Builders and recorded objects for the tests of the simulated controllers."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

from muster.cluster.interface import Object
from muster.objects import yaml_files
from muster.objects.resources import by_kind
from muster.simulator.controllers.framework.cache import Cache

RECORDED = Path(__file__).parent / "recorded"
NOW = 1_800_000_000.0
_numbers = itertools.count(1)


def recorded(name: str) -> list[Any]:
    """The documents of a file under recorded/."""
    return list(yaml_files.load_all((RECORDED / f"{name}.yaml").read_text()))


def recorded_object(name: str, kind: str, like: str = "") -> Object:
    """The recorded object of a kind whose name contains `like`."""
    return next(item for item in recorded(name) if item["kind"] == kind and like in item["metadata"]["name"])


def view(*items: Object) -> Cache:
    """A cache that holds these objects."""
    store = Cache()
    for item in items:
        resource = by_kind(item["apiVersion"], item["kind"])
        version = {"resourceVersion": item["metadata"].get("resourceVersion", "1")}
        uid = {"uid": item["metadata"].get("uid") or f"uid-{next(_numbers)}"}
        store.put(resource, {**item, "metadata": {**uid, **version, **item["metadata"]}})
    return store


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


def owned_by(owner: Object) -> list[Object]:
    """The ownerReferences of something that this object controls."""
    metadata = owner["metadata"]
    names = {"name": metadata["name"], "uid": metadata["uid"]}
    return [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True, **names}]


def a_job(**spec: Any) -> Object:
    """An Indexed Job of three pods."""
    pod = {"containers": [{"name": "main", "image": "example"}]}
    template = {"metadata": {"labels": {"team": "a"}}, "spec": pod}
    size = {"parallelism": 3, "completions": 3, "completionMode": "Indexed", "backoffLimit": 6}
    return an_object("batch/v1", "Job", "sweep", {**size, "template": template, **spec})


def a_pod_of(job: Object, index: int, phase: str = "Running", **metadata: Any) -> Object:
    """A bound pod of a Job that was not counted yet."""
    conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    pod = an_object(
        "v1",
        "Pod",
        f"{job['metadata']['name']}-{index}-{next(_numbers):05}",
        {"nodeName": "node-1", "containers": [{"name": "main", "image": "example"}]},
        annotations={"batch.kubernetes.io/job-completion-index": str(index)},
        finalizers=["batch.kubernetes.io/job-tracking"],
        ownerReferences=owned_by(job),
    )
    pod["metadata"].update(metadata)
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

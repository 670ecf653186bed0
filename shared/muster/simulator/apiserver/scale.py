"""The scale subresource of custom resources."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, copied
from muster.simulator.apiserver.status import bad_request


def _path(dotted: str) -> list[str]:
    return [step for step in dotted.split(".") if step]


def scale_of(kind: Kind, obj: Object) -> Object:
    """The Scale of an object, read from the paths its definition names."""
    paths = kind.scale or {}
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": at(obj, *_path(paths.get("statusReplicasPath", ""))) or 0}
    selector = at(obj, *_path(paths.get("labelSelectorPath", ""))) if paths.get("labelSelectorPath") else None
    if selector:
        status["selector"] = selector
    replicas = at(obj, *_path(paths.get("specReplicasPath", "")))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {} if replicas is None else {"replicas": replicas},
        "status": status,
    }


def scaled(kind: Kind, obj: Object, scale: Any) -> Object:
    """A copy of an object with the number of replicas that a Scale asks for.

    Raises:
        ApiError: 400, the body is no Scale.
    """
    if not isinstance(scale, dict) or scale.get("kind", "Scale") != "Scale":
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    replicas = at(scale, "spec", "replicas") or 0
    changed: Object = copied(obj)
    *way, last = _path((kind.scale or {}).get("specReplicasPath", ""))
    section = changed
    for step in way:
        section = section.setdefault(step, {})
    section[last] = replicas
    version = at(scale, "metadata", "resourceVersion")
    if version:
        changed["metadata"]["resourceVersion"] = version
    return changed

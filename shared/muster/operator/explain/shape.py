"""Check that the objects of a file have the fields that an explanation reads, in the right types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.objects.resources import by_kind
from muster.replay.files import BadFileError
from muster.replay.snapshots import Object
from muster.simulator.typed import type_fault

_POD_TEMPLATE = "spec.template.spec"
_REPLICATED_JOBS = "spec.replicatedJobs[].template.spec.template.spec"
REQUIRED: Mapping[str, tuple[tuple[str, type], ...]] = {
    "Job": ((_POD_TEMPLATE, dict),),
    "JobSet": (("spec.replicatedJobs[].name", str), (_REPLICATED_JOBS, dict)),
    "TrainJob": (("spec.runtimeRef.name", str),),
    "TrainingRuntime": ((f"spec.template.{_REPLICATED_JOBS}", dict),),
    "ClusterTrainingRuntime": ((f"spec.template.{_REPLICATED_JOBS}", dict),),
    "Pod": (("spec", dict),),
    "PodGroup": (("spec.schedulingPolicy", dict),),
    "Workload": (("spec", dict),),
}
"""The fields that an object of a kind must have; `[]` stands for each entry of a list."""

OPTIONAL: Mapping[str, tuple[tuple[str, type], ...]] = {
    "ConfigMap": (("data", dict),),
}
"""The fields that must have their type if they are there."""

_NAMES: Mapping[type, str] = {dict: "a mapping", str: "a string", list: "a list"}


def check_shape(body: Object) -> None:
    """Check an object of a file.

    Raises:
        BadFileError: a field is missing or has another type; with the object and the path.
    """
    metadata = body["metadata"]
    for name in ("labels", "annotations"):
        values = metadata.get(name)
        if values is not None:
            _require(body, metadata, "metadata", name, dict)
            _check_strings(body, f"metadata.{name}", values)
    references = metadata.get("ownerReferences")
    if references is not None:
        _walk(body, body, "", ["metadata", "ownerReferences[]", "name"], str)
    try:
        by_kind(body["apiVersion"], body["kind"])
    except LookupError:
        return  # of another API group
    for path, wanted in REQUIRED.get(body["kind"], ()):
        _walk(body, body, "", path.split("."), wanted)
    for name, wanted in OPTIONAL.get(body["kind"], ()):
        if body.get(name) is not None:
            _require(body, body, "", name, wanted)
            _check_strings(body, name, body[name])
    if found := type_fault(body):
        raise _fault(body, *found)


def _check_strings(body: Object, path: str, values: Mapping[Any, Any]) -> None:
    for key, value in values.items():
        if not isinstance(value, str):
            raise _fault(body, f"{path}.{key}", "must be a string")


def _walk(body: Object, at: Any, place: str, parts: list[str], wanted: type) -> None:
    name, *rest = parts
    key = name.removesuffix("[]")
    if name != key:
        _require(body, at, place, key, list)
        for number, entry in enumerate(at[key]):
            inner = f"{place}.{key}[{number}]".removeprefix(".")
            if not isinstance(entry, dict):
                raise _fault(body, inner, "must be a mapping")
            _walk(body, entry, inner, rest, wanted)
        return
    _require(body, at, place, key, dict if rest else wanted)
    if rest:
        _walk(body, at[key], f"{place}.{key}".removeprefix("."), rest, wanted)


def _require(body: Object, at: Mapping[str, Any], place: str, key: str, wanted: type) -> None:
    value = at.get(key)
    path = f"{place}.{key}".removeprefix(".")
    if value is None:
        raise _fault(body, path, "is missing")
    if not isinstance(value, wanted):
        raise _fault(body, path, f"must be {_NAMES[wanted]}")


def _fault(body: Object, path: str, message: str) -> BadFileError:
    return BadFileError(f"{body['kind']} {body['metadata']['name']}: {path}", message)

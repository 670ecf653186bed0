"""Strategic merge of a runtimePatch into the JobSet template of a runtime."""

from __future__ import annotations

from typing import Any

MERGE_KEYS = {
    "replicatedJobs": "name",
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "schedulingGates": "name",
    "imagePullSecrets": "name",
}
"""Merge keys of the lists that are merged; other lists are replaced (patchMergeKey of core/v1)."""


def merged(source: Any, patch: Any, field: str = "") -> Any:
    """Return the source with the patch merged in, which shares parts with both; neither is modified.

    Args:
        source: a JSON value.
        patch: the values to merge; null removes a field.
        field: the name of the field that holds both values.
    """
    if isinstance(source, dict) and isinstance(patch, dict):
        result = dict(source)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = merged(result.get(name), value, name)
        return result
    if isinstance(source, list) and isinstance(patch, list) and field in MERGE_KEYS:
        return _merged_list(source, patch, MERGE_KEYS[field])
    return patch


def _merged_list(source: list[Any], patch: list[Any], key: str) -> list[Any]:
    overlays = {entry[key]: entry for entry in patch}
    result = [
        merged(entry, overlays.pop(entry[key])) if entry[key] in overlays else entry for entry in source
    ]
    return [*result, *overlays.values()]

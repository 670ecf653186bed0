"""Strategic merge of a runtimePatch into a runtime's JobSet template."""

from __future__ import annotations

import copy
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
"""Lists that merge entry by entry, by this key; any other list is replaced (patchMergeKey of core/v1)."""


def merged(source: Any, patch: Any, field: str = "") -> Any:
    """The source with the patch over it; neither argument is changed.

    Args:
        source: a JSON value.
        patch: what to lay over it; null takes a field away.
        field: the name of the field both are the value of.
    """
    if isinstance(source, dict) and isinstance(patch, dict):
        result = copy.deepcopy(source)
        for name, value in patch.items():
            if value is None:
                result.pop(name, None)
            else:
                result[name] = merged(result.get(name), value, name)
        return result
    if isinstance(source, list) and isinstance(patch, list) and field in MERGE_KEYS:
        return _merged_list(source, patch, MERGE_KEYS[field])
    return copy.deepcopy(patch)


def _merged_list(source: list[Any], patch: list[Any], key: str) -> list[Any]:
    given = {entry[key]: entry for entry in patch}
    result = [merged(entry, given.pop(entry[key])) if entry[key] in given else entry for entry in source]
    return [*copy.deepcopy(result), *copy.deepcopy(list(given.values()))]

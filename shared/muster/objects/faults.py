"""Faults of values in the words of Kubernetes instead of pydantic's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TYPES = {
    "must be an integer": "int_type int_parsing int_from_float int_parsing_size",
    "must be true or false": "bool_type bool_parsing",
    "must be a string": "string_type",
    "must be a list": "list_type tuple_type",
    "must be a mapping": "dict_type mapping_type model_type model_attributes_type",
    "is missing": "missing",
    "unknown field": "extra_forbidden",
}
_BY_TYPE = {kind: words for words, kinds in _TYPES.items() for kind in kinds.split()}
"""The words by pydantic's type of an error (pydantic_core, errors.rs)."""

_WITH_VALUE: Mapping[str, str] = {
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "has {actual_length} entries, at most {max_length} are allowed",
}


def fault(error: Mapping[str, Any]) -> str:
    """Return the words for one of the errors of a `pydantic.ValidationError`."""
    kind = str(error["type"])
    if kind in _WITH_VALUE:
        # Literals are given as `'Follow' or 'Flag'`.
        return _WITH_VALUE[kind].format_map(
            {name: str(value).replace("'", "") for name, value in error["ctx"].items()}
        )
    return _BY_TYPE.get(kind) or str(error["msg"]).removeprefix("Value error, ")


def path_of(location: Sequence[str | int]) -> str:
    """Return the path of a field: `spec.replicatedJobs[0].replicas`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")

"""Trigger filters, as in `pkg/eventfilter` of knative.dev/eventing v0.47.0.

Supported are the dialects exact, prefix, suffix, all, any and not, with values that are not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.simulator.overlays import UnsupportedManifestError

Predicate = Callable[[Mapping[str, str]], bool]
"""Whether an event with these attributes passes."""

_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda actual, value: actual == value,
    "prefix": lambda actual, value: actual.startswith(value),
    "suffix": lambda actual, value: actual.endswith(value),
}
_GROUPS = {"all": all, "any": any}


def compile_filters(trigger_spec: Mapping[str, Any]) -> Predicate:
    """Return the predicate of a trigger's `spec.filters`, which must all pass.

    Raises:
        UnsupportedManifestError: a filter has several dialects or an unknown one, or there is a `filter`.
    """
    if trigger_spec.get("filter"):
        raise UnsupportedManifestError("spec.filter: the local broker knows spec.filters only")
    return _compile({"all": trigger_spec.get("filters") or []})


def _compile(entry: Mapping[str, Any]) -> Predicate:
    if len(entry) != 1:
        raise UnsupportedManifestError(f"a filter has one dialect, not {sorted(entry)}")
    ((dialect, body),) = entry.items()
    if dialect == "not":
        inner = _compile(body)
        return lambda attributes: not inner(attributes)
    if dialect in _GROUPS:
        decide, members = _GROUPS[dialect], [_compile(member) for member in body]
        return lambda attributes: decide(member(attributes) for member in members)
    if dialect in _COMPARISONS:
        compare = _COMPARISONS[dialect]
        return lambda attributes: all(
            name in attributes and compare(attributes[name], value) for name, value in body.items()
        )
    raise UnsupportedManifestError(f"filter dialect {dialect} is not understood by the local broker")

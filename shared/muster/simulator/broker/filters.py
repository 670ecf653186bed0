"""Trigger filters, as in `pkg/eventfilter` of knative.dev/eventing v0.47.0.

Supported are the dialects exact, prefix, suffix, all, any and not, and the older `filter.attributes`. CESQL
is refused: eventing/ does not use it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.kustomize import UnsupportedManifestError

Attributes = Mapping[str, str]
Predicate = Callable[[Attributes], bool]


def compile_filters(trigger_spec: Mapping[str, Any]) -> Predicate:
    """Return the predicate of a trigger's `spec.filters`, else of its `spec.filter.attributes`.

    Raises:
        UnsupportedManifestError: a dialect is unknown or CESQL, or a filter has several dialects.
    """
    filters = trigger_spec.get("filters") or []
    if filters:
        return _every([_compile(entry) for entry in filters])
    expected: Attributes = (trigger_spec.get("filter") or {}).get("attributes") or {}
    return lambda attributes: all(_matches(attributes, name, value) for name, value in expected.items())


def _compile(entry: Mapping[str, Any]) -> Predicate:
    if len(entry) != 1:
        raise UnsupportedManifestError(f"a filter has exactly one dialect, not {sorted(entry)}")
    ((dialect, body),) = entry.items()
    if dialect in _COMPARISONS:
        return _compare(dialect, body)
    if dialect == "not":
        inner = _compile(body)
        return lambda attributes: not inner(attributes)
    if dialect in ("all", "any") and body:
        inners = [_compile(inner) for inner in body]
        return _every(inners) if dialect == "all" else _some(inners)
    raise UnsupportedManifestError(f"filter dialect {dialect!r} is not understood by the local broker")


def _compare(dialect: str, expected: Mapping[str, str]) -> Predicate:
    if not expected or not all(expected.values()):
        raise UnsupportedManifestError(f"{dialect}: attributes and values cannot be empty")
    compare = _COMPARISONS[dialect]
    return lambda attributes: all(
        name in attributes and compare(attributes[name], value) for name, value in expected.items()
    )


def _matches(attributes: Attributes, name: str, value: str) -> bool:
    """Compare an attribute for `filter.attributes`: an empty value matches any non-empty attribute."""
    return attributes.get(name, "") == value if value else bool(attributes.get(name))


def _every(predicates: list[Predicate]) -> Predicate:
    return lambda attributes: all(predicate(attributes) for predicate in predicates)


def _some(predicates: list[Predicate]) -> Predicate:
    return lambda attributes: any(predicate(attributes) for predicate in predicates)


_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda actual, value: actual == value,
    "prefix": lambda actual, value: actual.startswith(value),
    "suffix": lambda actual, value: actual.endswith(value),
}

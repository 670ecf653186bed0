"""Trigger filters: which events a trigger lets through.

As knative.dev/eventing v0.47.0 `pkg/eventfilter` does it, for the dialects exact, prefix, suffix, all, any
and not, and the older `filter.attributes`. CESQL is refused: eventing/ does not use it, and half a language
would lie.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.manifests import UnsupportedManifestError

Attributes = Mapping[str, str]
Predicate = Callable[[Attributes], bool]


def compile_filters(trigger_spec: Mapping[str, Any]) -> Predicate:
    """The predicate of a trigger's `spec.filters`, or of `spec.filter.attributes` where there are none.

    Raises:
        UnsupportedManifestError: a dialect is unknown, is CESQL, or is not alone in its filter.
    """
    filters = trigger_spec.get("filters") or []
    if filters:
        return _every([_compile(one) for one in filters])
    wanted: Attributes = (trigger_spec.get("filter") or {}).get("attributes") or {}
    return lambda attributes: all(_matches(attributes, name, value) for name, value in wanted.items())


def _compile(one: Mapping[str, Any]) -> Predicate:
    if len(one) != 1:
        raise UnsupportedManifestError(f"a filter has exactly one dialect, not {sorted(one)}")
    ((dialect, body),) = one.items()
    if dialect in _COMPARISONS:
        return _compare(dialect, body)
    if dialect == "not":
        inner = _compile(body)
        return lambda attributes: not inner(attributes)
    if dialect in ("all", "any") and body:
        inners = [_compile(inner) for inner in body]
        return _every(inners) if dialect == "all" else _some(inners)
    raise UnsupportedManifestError(f"filter dialect {dialect!r} is not understood by the local broker")


def _compare(dialect: str, wanted: Mapping[str, str]) -> Predicate:
    if not wanted or not all(wanted.values()):
        raise UnsupportedManifestError(f"{dialect}: attributes and values cannot be empty")
    holds = _COMPARISONS[dialect]
    return lambda attributes: all(
        name in attributes and holds(attributes[name], value) for name, value in wanted.items()
    )


def _matches(attributes: Attributes, name: str, value: str) -> bool:
    """`filter.attributes`: an empty value asks for any, but for a non-empty one."""
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

"""Trigger filters, as in `pkg/eventfilter` of knative.dev/eventing v0.47.0.

Supported are the dialects exact, prefix, suffix, all, any and not, and the older `filter.attributes`. CESQL
is refused: there is no maintained Python library that evaluates it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker.attributes import media_type

Attributes = Mapping[str, str]
Predicate = Callable[[Attributes], bool]

Verdict = bool | None
"""Pass, fail, or None for a filter with nothing to compare; only a failure keeps an event from a trigger."""

Judge = Callable[[Attributes], Verdict]

ZERO_TIME = "0001-01-01T00:00:00Z"
"""The time of an event without one (`LookupAttribute` in `pkg/eventfilter/attributes/filter.go`)."""

_NAME = re.compile(r"[a-z][a-z0-9]*")
_COMPARISONS: dict[str, Callable[[str, str], bool]] = {
    "exact": lambda actual, value: actual == value,
    "prefix": lambda actual, value: actual.startswith(value),
    "suffix": lambda actual, value: actual.endswith(value),
}
_GROUPS = ("all", "any")
_DIALECTS = frozenset({*_COMPARISONS, *_GROUPS, "not", "cesql"})


def compile_filters(trigger_spec: Mapping[str, Any]) -> Predicate:
    """Return the predicate of a trigger's `spec.filters`, else of its `spec.filter.attributes`.

    Raises:
        UnsupportedManifestError: a dialect is unknown or CESQL, a filter has several dialects, or the name of
            an attribute is invalid.
    """
    expected: Attributes = (trigger_spec.get("filter") or {}).get("attributes") or {}
    _check_names("filter.attributes", expected)
    entries = trigger_spec.get("filters") or []
    if entries:
        judge = _all(_compile_list(entries))
        return lambda attributes: judge(attributes) is not False
    return lambda attributes: all(_matches(attributes, name, value) for name, value in expected.items())


def _compile_list(entries: Sequence[Mapping[str, Any] | None]) -> list[Judge]:
    """Return the filters of a list; those that are empty are left out (`MaterializeFiltersList`)."""
    return [judge for entry in entries if (judge := _compile(entry or {})) is not None]


def _compile(entry: Mapping[str, Any]) -> Judge | None:
    """Return a filter; None if it is empty or has an empty value (`MaterializeSubscriptionsAPIFilter`)."""
    if unknown := sorted(set(entry) - _DIALECTS):
        raise UnsupportedManifestError(
            f"filter dialect {', '.join(unknown)} is not understood by the local broker"
        )
    if entry.get("cesql"):
        raise UnsupportedManifestError(
            "filter dialect cesql: the local broker cannot evaluate CESQL, since no maintained Python "
            "library does; Knative's broker can"
        )
    filled = [name for name in entry if entry[name] or (name == "not" and entry[name] is not None)]
    if len(filled) > 1:
        raise UnsupportedManifestError(f"a filter has one dialect, not {sorted(filled)}")
    if not filled:
        return None
    (dialect,) = filled
    body = entry[dialect]
    if dialect == "not":
        inner = _compile(body)
        if inner is None:
            raise UnsupportedManifestError(
                "not: the filter in it is empty, with which Knative's filter panics"
            )
        return _not(inner)
    if dialect in _GROUPS:
        return (_all if dialect == "all" else _any)(_compile_list(body))
    return _compare(dialect, body)


def _compare(dialect: str, expected: Mapping[str, str]) -> Judge | None:
    _check_names(dialect, expected)
    if not all(expected.values()):
        return None
    compare = _COMPARISONS[dialect]

    def judge(attributes: Attributes) -> Verdict:
        for name, value in expected.items():
            actual = _lookup(attributes, name)
            if actual is None or not compare(actual, value):
                return False
        return True

    return judge


def _not(inner: Judge) -> Judge:
    def judge(attributes: Attributes) -> Verdict:
        verdict = inner(attributes)
        return None if verdict is None else not verdict

    return judge


def _all(judges: list[Judge]) -> Judge:
    """Return a filter that fails if one of its members fails; else it judges as the last one."""
    return lambda attributes: _first_or_last([judge(attributes) for judge in judges], decisive=False)


def _any(judges: list[Judge]) -> Judge:
    """Return a filter that passes if one of its members passes; else it judges as the last one."""
    return lambda attributes: _first_or_last([judge(attributes) for judge in judges], decisive=True)


def _first_or_last(verdicts: list[Verdict], *, decisive: bool) -> Verdict:
    return decisive if decisive in verdicts else (verdicts or [None])[-1]


def _lookup(attributes: Attributes, name: str) -> str | None:
    """Return the value that filters see; None for an extension that the event does not have."""
    match name:
        case "time":
            return attributes.get("time") or ZERO_TIME
        case "schemaurl" | "dataschema":
            return attributes.get("dataschema") or attributes.get("schemaurl", "")
        case "datamediatype":
            return media_type(attributes.get("datacontenttype", ""))
        case "subject" | "datacontenttype" | "datacontentencoding":
            return attributes.get(name, "")
        case _:
            return attributes.get(name)


def _matches(attributes: Attributes, name: str, value: str) -> bool:
    """Compare an attribute for `filter.attributes`: an empty value matches any non-empty attribute."""
    actual = _lookup(attributes, name)
    return actual == value if value else bool(actual)


def _check_names(field: str, expected: Mapping[str, str]) -> None:
    """Refuse names that Knative's webhook refuses (`ValidateAttributesNames`)."""
    if wrong := sorted(name for name in expected if not _NAME.fullmatch(name)):
        raise UnsupportedManifestError(
            f"{field}: {', '.join(wrong)}: the name of an attribute has lower-case letters and digits"
        )

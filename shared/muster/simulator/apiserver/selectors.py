"""Label and field selectors, parsed from query strings and from `LabelSelector` objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.status import bad_request

Matcher = Callable[[Object], bool]
"""Whether an object is selected."""

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUAL = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<not>!?)\s*(?P<key>[^\s!=,()]+)\s*$")

SELECTABLE: Mapping[tuple[str, str], frozenset[str]] = {
    ("", "pods"): frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    ("", "namespaces"): frozenset({"status.phase", "name"}),
    ("", "nodes"): frozenset({"spec.unschedulable"}),
    ("", "secrets"): frozenset({"type"}),
    ("", "services"): frozenset({"spec.clusterIP", "spec.type"}),
    ("", "events"): frozenset(
        {
            *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion")),
            *("involvedObject.resourceVersion", "involvedObject.fieldPath"),
            *("reason", "reportingComponent", "source", "type"),
        }
    ),
    ("batch", "jobs"): frozenset({"status.successful"}),
}
"""Fields beside metadata.name and metadata.namespace that a kind can be selected by."""


def labels_matcher(text: str) -> Matcher | None:
    """The matcher of a `labelSelector` query; None selects everything.

    Raises:
        ApiError: 400, the selector cannot be parsed.
    """
    if not text.strip():
        return None
    tests = [_requirement(part) for part in _split(text)]
    return lambda obj: all(test(at(obj, "metadata", "labels") or {}) for test in tests)


def _split(text: str) -> list[str]:
    return re.split(r",(?![^(]*\))", text)


def _requirement(part: str) -> Callable[[Mapping[str, str]], bool]:
    if found := _SET.match(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["operator"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(part):
        key, value = found["key"], found["value"]
        if found["operator"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(part):
        key, wanted = found["key"], not found["not"]
        return lambda labels: (key in labels) == wanted
    if re.search(r"\s(not)?in\s*$", part):
        raise bad_request("unable to parse requirement: found '' expected: '('")
    raise bad_request(
        f"unable to parse requirement: found '{part.strip()}', expected: ',' or 'end of string'"
    )


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a `LabelSelector` object selects labels; None selects nothing, an empty one everything."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_expression(entry, labels) for entry in selector.get("matchExpressions") or [])


def _expression(entry: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(entry["key"]), entry.get("values") or []
    match entry["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None


def fields_matcher(kind: Kind, text: str) -> Matcher | None:
    """The matcher of a `fieldSelector` query; None selects everything.

    Raises:
        ApiError: 400, the kind cannot be selected by that field.
    """
    if not text.strip():
        return None
    tests: list[tuple[list[str], str, bool]] = []
    for part in text.split(","):
        found = re.match(r"^\s*(?P<field>[^!=\s]+)\s*(?P<operator>==|=|!=)(?P<value>.*)$", part)
        if not found:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field = found["field"]
        known = {"metadata.name", "metadata.namespace"} | SELECTABLE.get(kind.storage, frozenset())
        if field not in known:
            raise bad_request(_unknown(kind, field))
        tests.append((_path(field), found["value"], found["operator"] != "!="))
    return lambda obj: all((_text(at(obj, *path)) == value) == wanted for path, value, wanted in tests)


def _unknown(kind: Kind, field: str) -> str:
    if kind.custom or kind.group in {"", "batch"}:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _path(field: str) -> list[str]:
    special = {"status.successful": "status.succeeded", "name": "metadata.name", "source": "source.component"}
    return special.get(field, field).split(".")


def _text(value: Any) -> str:
    if value is None:
        return ""
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)

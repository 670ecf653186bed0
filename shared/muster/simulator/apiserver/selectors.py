"""Label selectors and field selectors, from query strings and from `LabelSelector` objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.refusals import bad_request

Matcher = Callable[[Object], bool]
"""Returns whether an object is selected."""

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\s*$")
_EQUAL = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<not>!?)\s*(?P<key>[^\s!=,()]+)\s*$")


def labels_matcher(text: str) -> Matcher:
    """Return the matcher of a `labelSelector` parameter; an empty one selects everything."""
    parts = re.split(r",(?![^(]*\))", text) if text.strip() else []
    requirements = [_requirement(part) for part in parts]
    return lambda obj: all(holds(at(obj, "metadata", "labels") or {}) for holds in requirements)


def _requirement(part: str) -> Callable[[Mapping[str, str]], bool]:
    if match := _SET.match(part):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        among = match["operator"] == "in"
        return lambda labels: (labels.get(key) in values) == among
    if match := _EQUAL.match(part):
        key, value, equal = match["key"], match["value"], match["operator"] != "!="
        return lambda labels: (labels.get(key) == value) == equal
    if match := _EXISTS.match(part):
        key, must_exist = match["key"], not match["not"]
        return lambda labels: (key in labels) == must_exist
    raise bad_request(f"unable to parse requirement: '{part.strip()}'")


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a `LabelSelector` selects these labels; an empty selector selects everything."""
    match_labels = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in match_labels.items()):
        return False
    return all(_holds(expression, labels) for expression in selector.get("matchExpressions") or [])


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case operator:
            return bool((value is not None) == (operator == "Exists"))


def fields_matcher(text: str) -> Matcher:
    """Return the matcher of a `fieldSelector` parameter; an empty one selects everything."""
    terms: list[tuple[list[str], str, bool]] = []
    for part in filter(None, text.split(",")):
        match = re.match(r"^\s*(?P<field>[^!=\s]+)\s*(?P<operator>==|=|!=)(?P<value>.*)$", part)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((match["field"].split("."), match["value"], match["operator"] != "!="))
    return lambda obj: all((str(at(obj, *path) or "") == value) == equal for path, value, equal in terms)

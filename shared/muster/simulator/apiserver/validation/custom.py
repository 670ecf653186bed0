"""Validation of custom resources with the OpenAPI schema of their CustomResourceDefinition.

Messages as in k8s.io/apiextensions-apiserver v0.37.1, `pkg/apiserver/validation`, which passes on those of
k8s.io/kube-openapi. `validation.cel` evaluates the CEL rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import FieldError, invalid, not_supported, required, too_many
from muster.simulator.apiserver.validation.cel import broken_rules, has_rules
from muster.simulator.patterns import PatternError, has_match

TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


ERRORS_BEFORE_CEL = frozenset(
    {
        *("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany"),
        "FieldValueTypeInvalid",
    }
)
"""The types of errors after which CEL rules are not evaluated."""

MOST_ERRORS, MOST_CHARACTERS = 100, 2**20
"""The most errors of an object that are returned, and of characters but for the last one.

The error of an enum names all its members, and that of a text its pattern, each maybe a megabyte."""

CEL_SKIPPED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def check(obj: Object, old: Object | None, schema: Schema) -> list[FieldError]:
    """Return the first errors of a custom resource outside its metadata.

    Args:
        obj: the custom resource.
        old: it before an update; None on creation.
        schema: its schema.
    """
    body = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "metadata"}}
    errors = _first(_value(body, _without_meta(schema), ""))
    if any(error.type in ERRORS_BEFORE_CEL for error in errors) and has_rules(schema):
        return [*errors, FieldError("FieldValueInvalid", "<nil>", CEL_SKIPPED, None)]
    return _first(chain(errors, broken_rules(obj, old, schema)))


def _first(errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the first errors, MOST_ERRORS at most, or as many as have MOST_CHARACTERS."""
    kept: list[FieldError] = []
    characters = 0
    for error in errors:
        kept.append(error)
        value = len(error.value) if isinstance(error.value, str) else 0
        characters += len(error.field) + len(error.detail) + value
        if len(kept) == MOST_ERRORS or characters > MOST_CHARACTERS:
            break
    return kept


def _without_meta(schema: Schema) -> Schema:
    properties = schema.get("properties") or {}
    kept = {key: child for key, child in properties.items() if key not in {"apiVersion", "kind", "metadata"}}
    required_names = [
        name for name in schema.get("required") or () if name not in {"apiVersion", "kind", "metadata"}
    ]
    return schema | {"properties": kept, "required": required_names}


def _value(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if value is None and (schema.get("nullable") or "type" not in schema):
        return
    expected = _expected_type(value, schema)
    if expected:
        yield _wrong_type(value, expected, path)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(path, value, (str(member) for member in schema["enum"]))
    if isinstance(value, dict):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, str):
        yield from _text(value, schema, path)
    elif not isinstance(value, bool):
        yield from _number(value, schema, path)


def _expected_type(value: Any, schema: Schema) -> str:
    """Return the type that a value should have but has not; empty if its type is right."""
    if schema.get("x-kubernetes-int-or-string"):
        return "" if isinstance(value, (int, str)) and not isinstance(value, bool) else "integer,string"
    expected = str(schema.get("type", ""))
    if expected not in TYPES:
        return ""
    matches = isinstance(value, TYPES[expected]) and (expected == "boolean" or not isinstance(value, bool))
    return "" if matches else expected


def _wrong_type(value: Any, expected: str, path: str) -> FieldError:
    type_names = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
    }
    actual = type_names.get(type(value), "null")
    detail = f'{path} in body must be of type {expected}: "{actual}"'
    return FieldError("FieldValueTypeInvalid", path, detail, actual)


def _object(value: Object, schema: Schema, path: str) -> Iterator[FieldError]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    for key, item in value.items():
        child = properties.get(key, additional)
        if isinstance(child, dict):
            yield from _value(item, child, f"{path}.{key}" if path else key)
    if len(value) > schema.get("maxProperties", len(value)):
        yield too_many(path, len(value), schema["maxProperties"])


def _list(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxItems", len(value)):
        yield too_many(path, len(value), schema["maxItems"])
    minimum = schema.get("minItems", 0)
    if len(value) < minimum:
        yield invalid(path, len(value), f"{path} in body should have at least {minimum} items")
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            yield from _value(item, items, f"{path}[{index}]")
    yield from _duplicates(value, schema, path)


def _duplicates(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    list_type = schema.get("x-kubernetes-list-type")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[str] = set()
    for index, item in enumerate(value):
        if list_type == "map" and isinstance(item, dict):
            identity: Any = {key: item.get(key) for key in keys}
        elif list_type == "set":
            identity = item
        else:
            continue
        serialized = json.dumps(identity, sort_keys=True)
        if serialized in seen:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]", "", identity)
        seen.add(serialized)


def _text(value: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxLength", len(value)):
        yield FieldError("FieldValueTooLong", path, f"may not be more than {schema['maxLength']} bytes")
    minimum = schema.get("minLength", 0)
    if len(value) < minimum:
        yield invalid(path, value, f"{path} in body should be at least {minimum} chars long")
    pattern = schema.get("pattern")
    try:
        matching = not pattern or has_match(pattern, value)
    except PatternError as error:
        matching, pattern = False, f"{pattern}, but pattern is invalid: error parsing regexp: {error}"
    if not matching:
        yield invalid(path, value, f"{path} in body should match '{pattern}'")


def _number(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    if value < schema.get("minimum", value):
        yield invalid(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", value):
        yield invalid(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")

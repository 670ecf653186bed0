"""Validation of custom resources with the OpenAPI schema of their CustomResourceDefinition.

Messages as in k8s.io/apiextensions-apiserver v0.37.1, `pkg/apiserver/validation`, which passes on those of
k8s.io/kube-openapi. Of the CEL rules only `self == oldSelf`, which makes fields immutable, is understood:
nearly all rules of JobSet's and the Trainer's definitions are of this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from muster.simulator.apiserver.http.requests import json_type
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.refusals import FieldError, invalid, not_supported, required, too_many
from muster.simulator.apiserver.schemas import Schema

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

META = {"apiVersion", "kind", "metadata"}
CEL_SKIPPED = "some validation rules were not checked because the object was invalid"
UNCHANGED = "self == oldSelf"
_ABSENT: Final = object()


def check(obj: Object, old: Object | None, schema: Schema) -> list[FieldError]:
    """Return the errors of a custom resource outside its metadata; `old` is None on creation."""
    body = {key: value for key, value in obj.items() if key not in META}
    errors = list(_value(body, _without_meta(schema), ""))
    if any(error.type in ERRORS_BEFORE_CEL for error in errors):
        skipped = FieldError("FieldValueInvalid", "<nil>", CEL_SKIPPED, None)
        return [*errors, skipped] if "x-kubernetes-validations" in str(schema) else errors
    if old is None:
        return errors
    return [*errors, *_broken_rules(obj, old, schema, "")]


def _without_meta(schema: Schema) -> Schema:
    properties = {key: child for key, child in (schema.get("properties") or {}).items() if key not in META}
    return schema | {"properties": properties, "required": set(schema.get("required") or ()) - META}


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
    detail = f'{path} in body must be of type {expected}: "{json_type(value)}"'
    return FieldError("FieldValueTypeInvalid", path, detail, json_type(value))


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
    minimum = schema.get("minProperties", 0)
    if len(value) < minimum:
        yield invalid(path, len(value), f"{path} in body should have at least {minimum} properties")


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
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") not in {"map", "set"}:
        return
    seen: list[Any] = []
    for index, item in enumerate(value):
        identity = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        if identity in seen:
            yield FieldError("FieldValueDuplicate", f"{path}[{index}]", "", identity)
        seen.append(identity)


def _text(value: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if len(value) > schema.get("maxLength", len(value)):
        yield FieldError("FieldValueTooLong", path, f"may not be more than {schema['maxLength']} bytes")
    minimum = schema.get("minLength", 0)
    if len(value) < minimum:
        yield invalid(path, value, f"{path} in body should be at least {minimum} chars long")
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        yield invalid(path, value, f"{path} in body should match '{pattern}'")


def _number(value: float, schema: Schema, path: str) -> Iterator[FieldError]:
    if value < schema.get("minimum", value):
        yield invalid(path, value, f"{path} in body should be greater than or equal to {schema['minimum']}")
    if value > schema.get("maximum", value):
        yield invalid(path, value, f"{path} in body should be less than or equal to {schema['maximum']}")


def _broken_rules(value: Any, old: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield the rules `self == oldSelf` that an update breaks; rules of other forms are not judged."""
    if value is _ABSENT or old is _ABSENT or value == old:
        return
    for rule in schema.get("x-kubernetes-validations") or ():
        if rule.get("rule", "").strip() == UNCHANGED:
            yield FieldError("FieldValueInvalid", path, rule.get("message") or f"failed rule: {UNCHANGED}")
    if isinstance(value, dict) and isinstance(old, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key, others)
            if isinstance(child, dict) and key != "metadata":
                child_path = f"{path}.{key}" if path else key
                yield from _broken_rules(item, old.get(key, _ABSENT), child, child_path)
    elif isinstance(value, list) and isinstance(old, list) and schema.get("x-kubernetes-list-type") == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        before = {tuple(item.get(key) for key in keys): item for item in old}
        for index, item in enumerate(value):
            match = before.get(tuple(item.get(key) for key in keys), _ABSENT)
            yield from _broken_rules(item, match, schema.get("items") or {}, f"{path}[{index}]")

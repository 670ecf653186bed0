"""Validation of custom resources with the OpenAPI schema of their CustomResourceDefinition.

Errors as in k8s.io/apiextensions-apiserver v0.37.1, `pkg/apiserver/validation`. Of the CEL rules only
`self == oldSelf`, which makes fields immutable, is understood: nearly all rules of JobSet's and the Trainer's
definitions are of this form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from muster.simulator.apiserver.fields.decoding import fits
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.refusals import FieldError, duplicate, invalid, not_supported, required
from muster.simulator.apiserver.schemas import Schema

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
_MOST = {
    "maxProperties": "FieldValueTooMany",
    "maxItems": "FieldValueTooMany",
    "maxLength": "FieldValueTooLong",
    "maximum": "FieldValueInvalid",
}
"""The limits of a schema, and the type of the error of what exceeds them."""

_LEAST = ("minProperties", "minItems", "minLength", "minimum")


def check(obj: Object, old: Object | None, schema: Schema) -> list[FieldError]:
    """Return the errors of a custom resource outside its metadata; `old` is None on creation."""
    body = {key: value for key, value in obj.items() if key not in META}
    errors = list(_value(body, _without_meta(schema), ""))
    if any(error.type in ERRORS_BEFORE_CEL for error in errors):
        skipped = FieldError("FieldValueInvalid", "<nil>", CEL_SKIPPED)
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
    if not fits(value, schema):
        yield FieldError("FieldValueTypeInvalid", path, f"must be of type {schema.get('type')}")
        return
    if "enum" in schema and value not in schema["enum"]:
        yield not_supported(path, value, map(str, schema["enum"]))
    yield from _size(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        yield from _list(value, schema, path)
    elif isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield invalid(path, value, f"should match '{schema['pattern']}'")


def _size(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    size = value if isinstance(value, (int, float)) else len(value)
    for keyword, error in _MOST.items():
        if size > schema.get(keyword, size):
            yield FieldError(error, path, f"{keyword} is {schema[keyword]}")
    for keyword in _LEAST:
        if size < schema.get(keyword, size):
            yield invalid(path, value, f"{keyword} is {schema[keyword]}")


def _object(value: Object, schema: Schema, path: str) -> Iterator[FieldError]:
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    for key, item in value.items():
        child = properties.get(key, additional)
        if isinstance(child, dict):
            yield from _value(item, child, f"{path}.{key}" if path else key)


def _list(value: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    items, keys = schema.get("items"), schema.get("x-kubernetes-list-map-keys") or ()
    seen: list[Any] = []
    for index, item in enumerate(value):
        if isinstance(items, dict):
            yield from _value(item, items, f"{path}[{index}]")
        identity = {key: item.get(key) for key in keys} if keys and isinstance(item, dict) else item
        if identity in seen and schema.get("x-kubernetes-list-type") in {"map", "set"}:
            yield duplicate(f"{path}[{index}]", identity)
        seen.append(identity)


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

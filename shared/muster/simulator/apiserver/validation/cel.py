"""The CEL rules of CustomResourceDefinitions that are understood here: `self == oldSelf`.

That one form makes fields immutable, and nearly all rules of JobSet's and the Trainer's definitions are of
it. Rules of other forms are not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import FieldError

UNCHANGED = "self == oldSelf"
_ABSENT: Final = object()


def has_rules(schema: Schema) -> bool:
    """Whether there is a CEL rule anywhere in a schema."""
    if schema.get("x-kubernetes-validations"):
        return True
    children = [
        *(schema.get("properties") or {}).values(),
        schema.get("items"),
        schema.get("additionalProperties"),
    ]
    return any(has_rules(child) for child in children if isinstance(child, dict))


def broken_rules(obj: Object, old: Object | None, schema: Schema) -> Iterator[FieldError]:
    """Yield the transition rules that an update breaks; at creation there are none."""
    return iter(()) if old is None else _walk(obj, old, schema, "")


def _walk(value: Any, old: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if value is _ABSENT or old is _ABSENT or value == old:
        return
    for rule in schema.get("x-kubernetes-validations") or ():
        if rule.get("rule", "").strip() == UNCHANGED:
            detail = rule.get("message") or f"failed rule: {UNCHANGED}"
            yield FieldError("FieldValueInvalid", path, detail, _shown(value))
    if isinstance(value, dict) and isinstance(old, dict):
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            child = properties.get(key, others)
            if isinstance(child, dict) and key != "metadata":
                yield from _walk(item, old.get(key, _ABSENT), child, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and isinstance(old, list) and schema.get("x-kubernetes-list-type") == "map":
        yield from _items(value, old, schema, path)


def _items(value: list[Any], old: list[Any], schema: Schema, path: str) -> Iterator[FieldError]:
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    before = {tuple(item.get(key) for key in keys): item for item in old}
    for index, item in enumerate(value):
        match = before.get(tuple(item.get(key) for key in keys), _ABSENT)
        yield from _walk(item, match, schema.get("items") or {}, f"{path}[{index}]")


def _shown(value: Any) -> Any:
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else value

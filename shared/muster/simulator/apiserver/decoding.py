"""From parsed JSON to an object of a kind: types checked, unknown fields dropped, empty ones left out.

The real server does this by decoding into Go structs; here the OpenAPI schema stands for the struct. Built-in
kinds answer a wrong type with 400 in the words of Go's decoder, custom resources are pruned and defaulted
here and judged by `validation.custom`.
"""

from __future__ import annotations

import re
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.requests import json_type
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import bad_request

ZERO_LEFT_OUT = frozenset(
    {
        *("active", "succeeded", "failed", "observedGeneration", "restartCount", "hostPort", "nodePort"),
        *("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "unschedulable"),
        *("globalDefault", "publishNotReadyAddresses", "allowWatchBookmarks", "deletionGracePeriod"),
    }
)
"""Optional fields that Go keeps by value with `omitempty`: zero and false are not stored."""

EMPTY_TEXT_KEPT = frozenset(
    {
        *(
            "storageClassName",
            "podGroupName",
            "parentCompositePodGroupName",
            "resourceClaimName",
            "managedBy",
        ),
        *("resourceClaimTemplateName", "clusterIP", "message", "reason", "timeZone", "failedIndexes"),
    }
)
"""Optional texts that Go keeps by pointer, or always writes: the empty text is a value."""

_INDEX = re.compile(r"\[\d+\]")
NAMES_OF_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


class Decoder:
    """Reads one body of one kind and remembers the fields it did not know.

    Attributes:
        unknown: the paths of fields that were dropped, as `spec.foo`.
    """

    def __init__(self, kind: Kind, meta: Schema) -> None:
        self.kind = kind
        self.unknown: list[str] = []
        self._meta = meta

    def read(self, body: Any) -> Object:
        """The object in a request's body.

        Raises:
            ApiError: 400, the body is no object of this kind or a field has the wrong type.
        """
        if not isinstance(body, dict):
            raise self._wrong(
                "json: cannot unmarshal " + _json_type(body) + " into Go value of type " + self._go()
            )
        found: Object = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        metadata = body.get("metadata")
        found["metadata"] = self._struct(metadata or {}, self._meta, "metadata", "ObjectMeta")
        rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
        if self.kind.custom:
            found |= self._pruned(rest, self.kind.schema, "")
        else:
            found |= self._struct(rest, self.kind.schema, "", self.kind.kind)
        return found

    def _go(self) -> str:
        return f"{self.kind.version}.{self.kind.kind}"

    def _wrong(self, why: str) -> Exception:
        kind, version = self.kind.kind, self.kind.version
        return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')

    def _mismatch(self, value: Any, schema: Schema, path: str, owner: str) -> Exception:
        field = f"{owner}.{_INDEX.sub('', path)}"
        return self._wrong(
            f"json: cannot unmarshal {_json_type(value)} into Go struct field {field} "
            f"of type {go_type(schema)}"
        )

    def _struct(self, value: Any, schema: Schema, path: str, owner: str) -> Object:
        if not isinstance(value, dict):
            raise self._mismatch(value, schema, path, owner)
        properties = schema.get("properties") or {}
        needed = schema.get("required") or ()
        found: Object = {}
        owner = schema.get("x-name", owner)
        for key, item in value.items():
            child = properties.get(key)
            where = f"{path}.{key}" if path else key
            if child is None:
                self.unknown.append(where)
            elif item is not None:
                read = self._value(item, child, where, owner)
                if key in needed or not _left_out(key, read, child):
                    found[key] = read
        return found

    def _value(self, value: Any, schema: Schema, path: str, owner: str) -> Any:
        if "properties" in schema:
            return self._struct(value, schema, path, owner)
        kind = schema.get("type")
        if kind == "array":
            if not isinstance(value, list):
                raise self._mismatch(value, schema, path, owner)
            items = schema["items"]
            return [self._item(item, items, f"{path}[{i}]", path, owner) for i, item in enumerate(value)]
        if kind == "object":
            if not isinstance(value, dict):
                raise self._mismatch(value, schema, path, owner)
            values = schema.get("additionalProperties")
            if not isinstance(values, dict):
                return value
            return {
                key: self._item(item, values, f"{path}.{key}", path, owner) for key, item in value.items()
            }
        if not _scalar_fits(value, schema):
            raise self._mismatch(value, schema, path, owner)
        return value

    def _item(self, item: Any, schema: Schema, indexed: str, path: str, owner: str) -> Any:
        if "properties" in schema:
            return self._struct({} if item is None else item, schema, indexed, owner)
        if item is None:
            return "" if schema.get("type") == "string" else item
        return self._value(item, schema, path, owner)

    def _pruned(self, value: Any, schema: Schema, path: str) -> Any:
        """A custom resource's value without what its schema does not name."""
        if isinstance(value, list):
            items = schema.get("items")
            if not isinstance(items, dict):
                return value
            return [self._pruned(item, items, f"{path}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        found: Object = {}
        for key, item in value.items():
            where = f"{path}.{key}" if path else key
            if key in properties:
                found[key] = self._pruned(item, properties[key], where)
            elif isinstance(others, dict):
                found[key] = self._pruned(item, others, where)
            elif (
                others
                or schema.get("x-kubernetes-preserve-unknown-fields")
                or ("x-kubernetes-embedded-resource" in schema and key in {"apiVersion", "kind", "metadata"})
            ):
                found[key] = item
            else:
                self.unknown.append(where)
        return found


def with_defaults(value: Any, schema: Schema) -> Any:
    """A custom resource's value with the defaults of its schema filled in, level by level."""
    if isinstance(value, list):
        items = schema.get("items")
        return [with_defaults(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    found: Object = {}
    for key, item in value.items():
        child = properties.get(key, others if isinstance(others, dict) else None)
        if item is None and child and not child.get("nullable"):
            continue  # as if it were not there
        found[key] = with_defaults(item, child) if child else item
    for key, child in properties.items():
        if key not in found and "default" in child:
            found[key] = with_defaults(copied(child["default"]), child)
    return found


def _left_out(key: str, value: Any, schema: Schema) -> bool:
    if value == "" and isinstance(value, str):
        return key not in EMPTY_TEXT_KEPT
    if value is False or (value == 0 and isinstance(value, int)):
        return key in ZERO_LEFT_OUT
    return not value and isinstance(value, (list, dict)) and "properties" not in schema and _sized(schema)


def _sized(schema: Schema) -> bool:
    return schema.get("type") == "array" or isinstance(schema.get("additionalProperties"), dict)


def _scalar_fits(value: Any, schema: Schema) -> bool:
    if "oneOf" in schema:
        return isinstance(value, (str, int, float)) and not isinstance(value, bool)
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return True


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number" if isinstance(value, int) else f"number {value}"
    return json_type(value)


def go_type(schema: Schema) -> str:
    """The Go type that a schema stands for: `[]v1.Container`, `int32`, `map[string]string`."""
    if "x-go" in schema:
        return str(schema["x-go"])
    match schema.get("type"):
        case "array":
            return "[]" + go_type(schema["items"])
        case "integer":
            return str(schema.get("format", "int64"))
        case "object":
            values = schema.get("additionalProperties")
            return "map[string]" + (go_type(values) if isinstance(values, dict) else "interface {}")
        case other:
            return NAMES_OF_TYPES.get(str(other), "interface {}")

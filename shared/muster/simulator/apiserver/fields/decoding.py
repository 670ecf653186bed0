"""Decode a request's body: check types, drop unknown fields, omit empty ones.

The real server decodes into Go structs; here the OpenAPI schema takes the place of the struct. A wrong type
in a built-in kind is answered with 400 and the message of Go's decoder. Custom resources are pruned and
defaulted here and validated by `validation.custom`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from muster.simulator.apiserver.http.requests import json_type
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import ApiError, bad_request

MOST_DEFAULT_BYTES = 1_572_864
"""The most JSON that defaults add to a custom resource; etcd stores no larger one (`--max-request-bytes`).

Those of a list in a list are multiplied: a definition of a kilobyte could add gigabytes."""

MOST_UNKNOWN = 100
"""The most unknown fields that are named; the path of each may have 40,000 characters."""

OMITTED_ZEROS = frozenset(
    {
        *("active", "succeeded", "failed", "observedGeneration", "restartCount", "hostPort", "nodePort"),
        *("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "unschedulable"),
        *("globalDefault", "publishNotReadyAddresses", "allowWatchBookmarks", "deletionGracePeriod"),
    }
)
"""Optional fields that are values with `omitempty` in Go: zero and false are not stored."""

STORED_EMPTY_STRINGS = frozenset(
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
"""Strings that are pointers in Go, or have no `omitempty`: the empty string is stored."""

_INDEX = re.compile(r"\[\d+\]")
GO_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}


class Decoder:
    """Decodes the body of a kind and collects its unknown fields."""

    def __init__(self, kind: Kind, meta: Schema) -> None:
        self.kind = kind
        self.unknown: list[str] = []
        self._meta = meta

    def read(self, body: Any) -> Object:
        """Return the object in a parsed body."""
        if not isinstance(body, dict):
            raise self._error(
                "json: cannot unmarshal " + _json_type(body, {}) + " into Go value of type " + self._go_type()
            )
        obj: Object = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        metadata = body.get("metadata")
        obj["metadata"] = self._struct(metadata or {}, self._meta, "metadata", "ObjectMeta")
        rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
        if self.kind.custom:
            obj |= self._pruned(rest, self.kind.schema, "")
        else:
            obj |= self._struct(rest, self.kind.schema, "", self.kind.kind)
        return obj

    def _drop(self, path: str) -> None:
        if len(self.unknown) < MOST_UNKNOWN:
            self.unknown.append(path)

    def _go_type(self) -> str:
        return f"{self.kind.version}.{self.kind.kind}"

    def _error(self, detail: str) -> Exception:
        kind, version = self.kind.kind, self.kind.version
        return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {detail}')

    def _mismatch(self, value: Any, schema: Schema, path: str, owner: str) -> Exception:
        field = f"{owner}.{_INDEX.sub('', path)}"
        return self._error(
            f"json: cannot unmarshal {_json_type(value, schema)} into Go struct field {field} "
            f"of type {go_type(schema)}"
        )

    def _struct(self, value: Any, schema: Schema, path: str, owner: str) -> Object:
        if not isinstance(value, dict):
            raise self._mismatch(value, schema, path, owner)
        properties = schema.get("properties") or {}
        required = schema.get("required") or ()
        struct: Object = {}
        owner = schema.get("x-name", owner)
        for key, item in value.items():
            child = properties.get(key)
            child_path = f"{path}.{key}" if path else key
            if child is None:
                self._drop(child_path)
            elif item is not None:
                decoded = self._value(item, child, child_path, owner)
                if key in required or not _omitted(key, decoded, child):
                    struct[key] = decoded
        return struct

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
        if not _scalar_matches(value, schema):
            raise self._mismatch(value, schema, path, owner)
        return value

    def _item(self, item: Any, schema: Schema, indexed: str, path: str, owner: str) -> Any:
        if "properties" in schema:
            return self._struct({} if item is None else item, schema, indexed, owner)
        if item is None:
            return "" if schema.get("type") == "string" else item
        return self._value(item, schema, path, owner)

    def _pruned(self, value: Any, schema: Schema, path: str) -> Any:
        """Return a value of a custom resource without the fields that its schema does not specify."""
        if isinstance(value, list):
            items = schema.get("items")
            if not isinstance(items, dict):
                return value
            return [self._pruned(item, items, f"{path}[{i}]") for i, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        kept: Object = {}
        for key, item in value.items():
            child_path = f"{path}.{key}" if path else key
            if key in properties:
                kept[key] = self._pruned(item, properties[key], child_path)
            elif isinstance(additional, dict):
                kept[key] = self._pruned(item, additional, child_path)
            elif (
                additional
                or schema.get("x-kubernetes-preserve-unknown-fields")
                or ("x-kubernetes-embedded-resource" in schema and key in {"apiVersion", "kind", "metadata"})
            ):
                kept[key] = item
            else:
                self._drop(child_path)
        return kept


def with_defaults(obj: Object, schema: Schema) -> Object:
    """Return a custom resource with the defaults of its schema at every level."""
    defaulted: Object = _Defaults().added(obj, schema)
    return defaulted


class _Defaults:
    """Adds the defaults of a schema to one object, and counts their bytes."""

    def __init__(self) -> None:
        self._bytes = 0

    def added(self, value: Any, schema: Schema) -> Any:
        """Return a value with the defaults of its schema at every level."""
        if isinstance(value, list):
            items = schema.get("items")
            return [self.added(item, items) for item in value] if isinstance(items, dict) else value
        if not isinstance(value, dict):
            return value
        properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
        defaulted: Object = {}
        for key, item in value.items():
            child = properties.get(key, additional if isinstance(additional, dict) else None)
            if item is None and child and not child.get("nullable"):
                continue  # null in a field that is not nullable counts as unset
            defaulted[key] = self.added(item, child) if child else item
        for key, child in properties.items():
            if key not in defaulted and "default" in child:
                self._count(key, child["default"])
                defaulted[key] = self.added(copied(child["default"]), child)
        return defaulted

    def _count(self, key: str, default: Any) -> None:
        self._bytes += len(key) + len(json.dumps(default))
        if self._bytes > MOST_DEFAULT_BYTES:
            raise ApiError(500, "", "etcdserver: request is too large", {})


def _omitted(key: str, value: Any, schema: Schema) -> bool:
    """Whether Go leaves this empty value out when it encodes the struct."""
    if value == "" and isinstance(value, str):
        return key not in STORED_EMPTY_STRINGS
    if value is False or (value == 0 and isinstance(value, int)):
        return key in OMITTED_ZEROS
    if "properties" in schema:
        return False
    return not value and isinstance(value, (list, dict)) and _list_or_map(schema)


def _list_or_map(schema: Schema) -> bool:
    return schema.get("type") == "array" or isinstance(schema.get("additionalProperties"), dict)


def _scalar_matches(value: Any, schema: Schema) -> bool:
    if "oneOf" in schema:
        return isinstance(value, (str, int, float)) and not isinstance(value, bool)
    match schema.get("type"):
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and not overflows(value, schema)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case _:
            return True


def overflows(value: int, schema: Schema) -> bool:
    """Whether an integer does not fit into the Go type of a schema, int32 or int64."""
    most = 2 ** (31 if schema.get("format") == "int32" else 63)
    return schema.get("type") == "integer" and not -most <= value < most


def _json_type(value: Any, schema: Schema) -> str:
    """Return the JSON type of a value as Go's decoder prints it; with the number if that does not fit."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        fits = isinstance(value, int) and not overflows(value, schema)
        return "number" if fits else f"number {value}"
    return json_type(value)


def go_type(schema: Schema) -> str:
    """Return the Go type of a schema: `[]v1.Container`, `int32`, `map[string]string`."""
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
        case scalar:
            return GO_SCALARS.get(str(scalar), "interface {}")

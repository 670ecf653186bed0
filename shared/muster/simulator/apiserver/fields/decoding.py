"""Decode a request's body: check types, drop unknown fields, omit empty ones.

The real server decodes into Go structs; here the OpenAPI schema takes the place of the struct. A wrong type
in a built-in kind is answered with 400 and the message of Go's decoder. Custom resources are pruned and
defaulted here and validated by `validation.custom`.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.http.requests import json_type
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, copied
from muster.simulator.apiserver.refusals import bad_request
from muster.simulator.apiserver.schemas import Schema

OMITTED_ZEROS = {
    *("active", "succeeded", "failed", "observedGeneration", "restartCount", "hostPort", "nodePort"),
    *("hostNetwork", "hostPID", "hostIPC", "readOnly", "stdin", "stdinOnce", "tty", "unschedulable"),
    *("globalDefault", "publishNotReadyAddresses"),
}
"""Optional fields that are values with `omitempty` in Go: zero and false are not stored."""

STORED_EMPTY_STRINGS = {
    *("storageClassName", "podGroupName", "parentCompositePodGroupName", "resourceClaimName", "managedBy"),
    *("resourceClaimTemplateName", "clusterIP", "message", "reason", "timeZone", "failedIndexes"),
}
"""Strings that are pointers in Go, or have no `omitempty`: the empty string is stored."""


class Decoder:
    """Decodes the body of a kind; `unknown` has the paths of the fields that were dropped."""

    def __init__(self, kind: Kind, meta: Schema) -> None:
        self.kind = kind
        self.unknown: list[str] = []
        self._meta = meta

    def read(self, body: Object) -> Object:
        """Return the object in a parsed body; ApiError 400 if a field has the wrong type."""
        obj: Object = {"apiVersion": self.kind.api_version, "kind": self.kind.kind}
        obj["metadata"] = self._struct(body.get("metadata") or {}, self._meta, "metadata")
        rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
        decode = self._pruned if self.kind.custom else self._struct
        return obj | decode(rest, self.kind.schema, "")

    def _mismatch(self, value: Any, schema: Schema, path: str) -> Exception:
        kind, version = self.kind.kind, self.kind.version
        return bad_request(
            f'{kind} in version "{version}" cannot be handled as a {kind}: json: cannot unmarshal '
            f"{json_type(value)} into Go struct field {path} of type {schema.get('type', 'object')}"
        )

    def _struct(self, value: Any, schema: Schema, path: str) -> Object:
        if not isinstance(value, dict):
            raise self._mismatch(value, schema, path)
        properties, required = schema.get("properties") or {}, schema.get("required") or ()
        struct: Object = {}
        for key, item in value.items():
            child = properties.get(key)
            child_path = f"{path}.{key}" if path else key
            if child is None:
                self.unknown.append(child_path)
            elif item is not None:
                decoded = self._value(item, child, child_path)
                if key in required or not _omitted(key, decoded, child):
                    struct[key] = decoded
        return struct

    def _value(self, value: Any, schema: Schema, path: str) -> Any:
        if "properties" in schema:
            return self._struct(value, schema, path)
        kind = schema.get("type")
        if kind == "array":
            if not isinstance(value, list):
                raise self._mismatch(value, schema, path)
            return [self._item(item, schema["items"], f"{path}[{i}]") for i, item in enumerate(value)]
        if kind == "object":
            if not isinstance(value, dict):
                raise self._mismatch(value, schema, path)
            values = schema.get("additionalProperties")
            if not isinstance(values, dict):
                return value
            return {key: self._item(item, values, f"{path}.{key}") for key, item in value.items()}
        if not _scalar_matches(value, schema):
            raise self._mismatch(value, schema, path)
        return value

    def _item(self, item: Any, schema: Schema, path: str) -> Any:
        if item is None:
            return {} if "properties" in schema else "" if schema.get("type") == "string" else None
        return self._value(item, schema, path)

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
                self.unknown.append(child_path)
        return kept


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return a value of a custom resource with the defaults of its schema at every level."""
    if isinstance(value, list):
        items = schema.get("items")
        return [with_defaults(item, items) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    defaulted: Object = {}
    for key, item in value.items():
        child = properties.get(key, additional if isinstance(additional, dict) else None)
        if item is None and child and not child.get("nullable"):
            continue  # null in a field that is not nullable counts as unset
        defaulted[key] = with_defaults(item, child) if child else item
    for key, child in properties.items():
        if key not in defaulted and "default" in child:
            defaulted[key] = with_defaults(copied(child["default"]), child)
    return defaulted


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

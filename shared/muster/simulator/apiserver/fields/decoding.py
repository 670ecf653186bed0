"""Decode a request's body: check types, drop unknown fields, omit empty ones.

The real server decodes into Go structs; here the OpenAPI schema takes the place of the struct. A wrong type
in a built-in kind is answered with 400. Custom resources are pruned and defaulted here and validated by
`validation.custom`.
"""

from __future__ import annotations

from typing import Any

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
        obj["metadata"] = self._value(body.get("metadata") or {}, self._meta, "metadata")
        rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
        decode = self._pruned if self.kind.custom else self._struct
        return obj | decode(rest, self.kind.schema, "")

    def _struct(self, value: Object, schema: Schema, path: str) -> Object:
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
        if not fits(value, schema):
            kind, expected = self.kind.kind, schema.get("type", "object")
            raise bad_request(f"cannot be handled as a {kind}: {path} is not of type {expected}")
        if "properties" in schema:
            return self._struct(value, schema, path)
        if isinstance(value, list):
            return [self._item(item, schema["items"], f"{path}[{i}]") for i, item in enumerate(value)]
        values = schema.get("additionalProperties")
        if isinstance(value, dict) and isinstance(values, dict):
            return {key: self._item(item, values, f"{path}.{key}") for key, item in value.items()}
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
    if value == "":
        return key not in STORED_EMPTY_STRINGS
    if isinstance(value, int) and not value:
        return key in OMITTED_ZEROS
    is_map = isinstance(schema.get("additionalProperties"), dict)
    return value == [] or (value == {} and is_map and "properties" not in schema)


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def fits(value: Any, schema: Schema) -> bool:
    """Whether a value has the type of a schema; an integer has to fit into int32 or int64."""
    several = "oneOf" in schema or "x-kubernetes-int-or-string" in schema
    types = (str, int, float) if several else _TYPES.get(schema.get("type", ""), (object,))
    if not isinstance(value, types) or (isinstance(value, bool) and not {bool, object} & {*types}):
        return False
    most = 2 ** (31 if schema.get("format") == "int32" else 63)
    return types != (int,) or -most <= value < most

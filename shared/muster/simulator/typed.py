"""Find fields of a wrong type, and missing ones, by the schemas of the embedded API server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from muster.objects.meta import fault, ref_of
from muster.simulator.apiserver.fields.decoding import fits
from muster.simulator.apiserver.schemas import Schema, by_kind, object_meta, resource_definitions
from muster.simulator.quantities import is_quantity

_RELEASES = ("1.37", "1.36")
_WORDS: Mapping[str, str] = {
    "object": fault({"type": "dict_type"}),
    "array": fault({"type": "list_type"}),
    "string": fault({"type": "string_type"}),
    "boolean": fault({"type": "bool_type"}),
    "integer": fault({"type": "int_type"}),
    "number": "must be a number",
}
"""What is said of a value that is not of a type of JSON schema."""


def type_fault(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return path and message of the first field that an API server could not read; None if there is none.

    Of a kind that has no schema here only the metadata is looked at.
    """
    kind = body["kind"]
    group, _, version = body["apiVersion"].rpartition("/")
    schema = _schema(group, version, kind)
    properties = {**schema.get("properties", {}), "metadata": _meta()}
    return next(faults(body, {**schema, "properties": properties}, ""), None)


def first_type_fault(objects: Iterable[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return place and message of the first such field; the place is `Job team-a/sweep: spec.parallelism`."""
    for body in objects:
        if found := type_fault(body):
            path, message = found
            return f"{ref_of(body)}: {path}", message
    return None


def faults(value: Any, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and message of each field of the wrong type; null is a field that is not set."""
    if value is None:
        return
    wrong = _wrong(value, schema) or _wrong_key(value)
    if wrong:
        yield path, wrong
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from faults({} if entry is None else entry, schema.get("items", {}), f"{path}[{number}]")
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", ()):
            if value.get(name) is None and path:
                yield f"{path}.{name}", fault({"type": "missing"})
        for key, entry in value.items():
            child = properties.get(key, others)
            if isinstance(child, dict):
                # Of metadata in templates the schemas of custom resources say only that it is an object.
                known = _meta() if key == "metadata" and not child.get("properties") else child
                yield from faults(entry, known, f"{path}.{key}".removeprefix("."))


def _wrong_key(value: Any) -> str:
    """Return what is said of a mapping with a key that is no string, as of `yes: a` in YAML; "" of others."""
    odd = next((key for key in value if not isinstance(key, str)), "") if isinstance(value, dict) else ""
    return "" if isinstance(odd, str) else f"the key {odd} {fault({'type': 'string_type'})}"


def _wrong(value: Any, schema: Schema) -> str:
    """Return the fault of a value itself; "" if it can be read."""
    several = "oneOf" in schema or "x-kubernetes-int-or-string" in schema
    if fits(value, schema):
        is_odd = several and _is_of_quantities(schema) and not is_quantity(str(value))
        return "must be a quantity" if is_odd else ""
    if several:
        return "must be a string or a number"
    if schema["type"] == "integer" and isinstance(value, int) and not isinstance(value, bool):
        return f"must be an integer of {schema.get('format', 'int64').removeprefix('int')} bits"
    return _WORDS[schema["type"]]


def _is_of_quantities(schema: Schema) -> bool:
    """Return whether values are quantities, not the ports or percentages that are numbers or strings too.

    Of these, schemas of built-in kinds have a format, and those of custom resources have no pattern.
    """
    return "pattern" in schema if "x-kubernetes-int-or-string" in schema else "format" not in schema


@cache
def _meta() -> Schema:
    return object_meta(_RELEASES[0])


@cache
def _schema(group: str, version: str, kind: str) -> Schema:
    """Return the schema of a kind: of its version if that is known, else of another one, else none."""
    known = {**_of_built_in(group, kind), **_of_custom(group, kind)}
    return known.get(version) or next(iter(known.values()), {})


def _of_built_in(group: str, kind: str) -> dict[str, Schema]:
    """Return the schemas of a kind by version; the latest release comes first."""
    return {
        version: schema
        for release in _RELEASES
        for (of_group, version, of_kind), schema in by_kind(release).items()
        if (of_group, of_kind) == (group, kind)
    }


def _of_custom(group: str, kind: str) -> dict[str, Schema]:
    return {
        version["name"]: version["schema"]["openAPIV3Schema"]
        for definition in resource_definitions()
        if (definition["spec"]["group"], definition["spec"]["names"]["kind"]) == (group, kind)
        for version in definition["spec"]["versions"]
    }

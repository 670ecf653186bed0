"""The schema of a policy as files: for editors, and as a patch of the Trainer's runtime CRDs.

python -m tests.schemas.policy     writes them anew from shared/muster/policy/sources/schema.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from muster.data import EVENTING
from muster.policy.sources.schema import GroupPolicy, LockedFields, PodGroupPolicy
from muster.policy.tree.policy_tree import LEVELS

Schema = dict[str, Any]

FOR_EDITORS = EVENTING / "schemas" / "pod-group-policy.schema.json"
LOCKED_FIELDS = EVENTING / "schemas" / "locked-fields.schema.json"
CRD_PATCH = EVENTING / "components" / "runtime-policy-crd" / "pod-group-policy.patch.json"

_ADDED = ("workload", "kaiScheduler")
"""What released CRDs lack (Trainer v2.3.0); coscheduling and volcano are theirs."""

_PLACE = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/podGroupPolicy/properties"
_DROPPED = {"title", "default", "$defs"}
_NO_MORE = {"type": "array", "items": {"type": "object"}, "maxItems": 0}
"""Groups below the last level: left out of the schema, they would be dropped silently."""


def for_editors() -> Schema:
    """JSON Schema (2020-12) of a policy: `# yaml-language-server: $schema=...` in the file that has one."""
    return _with_null(_document(PodGroupPolicy))


def of_locked_fields() -> Schema:
    """JSON Schema (2020-12) of the fields that an administrator locks."""
    return _with_null(_document(LockedFields))


def _document(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema(by_alias=True)
    definitions = {name: _plain(found) for name, found in schema["$defs"].items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": model.__name__,
        **_plain(schema),
        "$defs": dict(sorted(definitions.items())),
    }


def _with_null(schema: Schema) -> Schema:
    """The schema of a text, in which null is as good as absent, and `{}` in some fields of a group."""
    empty = {name: {"type": "object", "maxProperties": 0} for name in GroupPolicy.absent_if_empty}
    for found in (schema, *schema["$defs"].values()):
        optional = (found.get("properties") or {}).keys() - set(found.get("required", ()))
        if found.pop("maxProperties", 0):
            del found["minProperties"]
            is_set = {name: {"properties": {name: {"not": {"type": "null"}}}} for name in sorted(optional)}
            found["oneOf"] = [{"required": [name], **rule} for name, rule in is_set.items()]
        for name in optional:
            also = [empty[name]] if found is schema["$defs"].get("GroupPolicy") and name in empty else []
            found["properties"][name] = {"anyOf": [found["properties"][name], *also, {"type": "null"}]}
    return schema


def crd_patch() -> list[Schema]:
    """JSON 6902 operations that let `podGroupPolicy` of a runtime CRD keep a policy of Muster's.

    A CRD has no references, hence one copy of a group for each level that a tree may have.
    """
    schema = _document(PodGroupPolicy)
    values = {name: _structural(schema["properties"][name], schema["$defs"], LEVELS) for name in _ADDED}
    return [{"op": "add", "path": f"{_PLACE}/{name}", "value": value} for name, value in values.items()]


def _plain(schema: Any) -> Any:
    """Without pydantic's titles, defaults and null."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        return _plain({key: value for key, value in schema.items() if key != "anyOf"} | choices[0])
    plain = {key: _plain(value) for key, value in schema.items() if key not in {*_DROPPED, "properties"}}
    if "properties" in schema:
        properties = {name: _plain(found) for name, found in schema["properties"].items()}
        plain = {
            key: properties if key == "properties" else plain[key] for key in schema if key not in _DROPPED
        }
    if "description" in plain:
        plain["description"] = plain["description"].partition("\n")[0]
    return plain


def _structural(schema: Schema, definitions: Schema, levels: int) -> Schema:
    """The schema with its references put in, and child groups down to so many levels."""
    if "$ref" in schema:
        return _structural(definitions[schema["$ref"].rpartition("/")[2]], definitions, levels)
    structural = {key: value for key, value in schema.items() if key != "additionalProperties"}
    if "const" in structural:
        structural["enum"] = [structural.pop("const")]
    if "items" in structural:
        structural["items"] = _structural(structural["items"], definitions, levels)
    if "properties" in structural:
        structural["properties"] = {
            key: _NO_MORE
            if key == "groups" and levels == 0
            else _structural(value, definitions, levels - (key == "groups"))
            for key, value in structural["properties"].items()
        }
    return structural


def files() -> dict[Path, str]:
    """The text of each file."""
    contents = {FOR_EDITORS: for_editors(), LOCKED_FIELDS: of_locked_fields(), CRD_PATCH: crd_patch()}
    return {path: json.dumps(content, indent=1) + "\n" for path, content in contents.items()}


if __name__ == "__main__":
    for file, text in files().items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

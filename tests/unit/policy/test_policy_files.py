"""The schema files in the repository are generated from shared/muster/policy/schema.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.schemas import policy as policy_schema

FILES = policy_schema.files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_a_schema_file_is_current(path: Path) -> None:
    """After a change of the schema: python -m tests.schemas.policy."""
    assert path.read_text() == FILES[path]


def test_a_crd_has_the_levels_that_a_workload_has() -> None:
    """Four lists of groups inside one another, and a fifth that takes nothing."""
    schema, depth = policy_schema.crd_patch()[0]["value"], 0
    while (groups := schema["properties"]["groups"])["maxItems"]:
        schema, depth = groups["items"], depth + 1
    assert depth == 4


def test_the_schema_for_editors_refuses_unknown_fields_everywhere() -> None:
    """Each struct is closed, but those that are the Trainer's."""
    definitions = policy_schema.for_editors()["$defs"]
    assert definitions
    assert all(definition["additionalProperties"] is False for definition in definitions.values())


def test_the_schema_for_editors_takes_null_where_a_field_may_be_absent() -> None:
    """As the code does; a name has to be there."""
    group = policy_schema.for_editors()["$defs"]["GroupPolicy"]["properties"]
    nullable = {name for name, found in group.items() if {"type": "null"} in found.get("anyOf", ())}
    assert nullable == set(group) - {"name"}

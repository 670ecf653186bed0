"""What docs/policy.md shows is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from muster.policy.sources import schema
from muster.policy.sources.schema import GroupPolicy, LockedFields

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy.md").read_text()
POLICIES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", POLICIES)
def test_a_policy_of_the_page_is_valid(text: str) -> None:
    """It can be copied as it stands."""
    schema.parse(text)


def test_every_field_of_the_schema_is_on_the_page() -> None:
    """Users do not use a field that the page does not describe."""
    fields = {*GroupPolicy.model_json_schema()["$defs"]["GroupPolicy"]["properties"]}
    fields |= {field.alias or name for name, field in LockedFields.model_fields.items()}
    fields |= {"onScale", "onFailure", "kaiScheduler", "minGroupCount", "coscheduling", "volcano"}
    assert {name for name in fields if name not in PAGE} == set()

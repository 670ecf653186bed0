"""What docs/policy.md shows is true."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from muster.policy.sources import schema
from muster.policy.sources.schema import GroupPolicy, LockedFields
from muster.policy.sources.source import ANNOTATION, CONFIG_MAP, CONFIG_MAP_KEY, LOCKED_KEY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "policy.md").read_text()
POLICIES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [
    line[2:] for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()
]


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


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("kubectl")])
def test_a_command_writes_a_policy_into_a_policy_source(command: str) -> None:
    """The key is the one that is read, the value a policy."""
    key, _, text = next(
        word for word in shlex.split(command) if "=" in word and ("workload" in word or LOCKED_KEY in word)
    ).partition("=")
    if key == "--from-literal":
        assert CONFIG_MAP in command
        key, _, text = text.partition("=")
    assert key in {ANNOTATION, CONFIG_MAP_KEY, LOCKED_KEY}
    if key == LOCKED_KEY:
        schema.parse_locked(text)
    else:
        schema.parse(text)

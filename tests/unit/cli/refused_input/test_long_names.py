"""What names an object in a file is refused if it is longer than Kubernetes allows, by every command."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.meta import overlong_field
from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_job

LONGEST = {"apiVersion": 317, "kind": 63, "metadata.name": 253, "metadata.namespace": 63}
COMMANDS = {"explain": ["explain"], "lint": ["lint"], "apiserver": ["apiserver", "--load"]}


def with_text(field: str, text: str) -> dict[str, Any]:
    """A Job with a text in the field."""
    job = a_job()
    (job["metadata"] if field.startswith("metadata.") else job)[field.removeprefix("metadata.")] = text
    return job


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("field", LONGEST)
def test_long_names_are_refused(muster: Muster, filed: Filed, field: str, command: str) -> None:
    """A name of 28 MB was printed six times: 336 MB, 1.2 GiB of memory."""
    path = filed("job.json", with_text(field, "\x1b" * 100_000))
    result = muster(*COMMANDS[command], path)
    assert result.exit_code == (1 if command == "lint" else 2)
    assert_names(result.output, "job.json", field, str(LONGEST[field]))


@pytest.mark.parametrize("field", LONGEST)
def test_the_longest_names_are_read(field: str) -> None:
    """One more character is too long."""
    assert overlong_field(with_text(field, "a" * LONGEST[field])) is None
    assert overlong_field(with_text(field, "a" * (LONGEST[field] + 1))) == (field, LONGEST[field])

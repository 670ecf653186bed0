"""A field is written without a change of the structs that others hold."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from muster.objects.field_paths import FieldPath

PATH = FieldPath(("spec", "jobs", (0, "node"), "metadata", "labels", "a"))


@pytest.mark.parametrize(
    ("labels", "value", "expected"),
    [
        pytest.param({"b": "c"}, "x", {"b": "c", "a": "x"}, id="set beside another"),
        pytest.param({"a": "y", "b": "c"}, None, {"b": "c"}, id="removed"),
    ],
)
def test_the_original_stays_as_it_is(
    labels: dict[str, str], value: str | None, expected: dict[str, str]
) -> None:
    """So that a runtime of a megabyte need not be copied as a whole."""
    original: dict[str, Any] = {"spec": {"jobs": [{"name": "node", "metadata": {"labels": labels}}]}}
    before, changed = deepcopy(original), dict(original)
    PATH.write(changed, value)
    assert original == before
    assert changed["spec"]["jobs"][0]["metadata"]["labels"] == expected

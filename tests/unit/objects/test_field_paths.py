"""Fields of parsed JSON are written without a change of what others hold, and their managers are read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from muster.objects.field_paths import MANAGER_ENTRIES, FieldPath, owned_by
from tests.support import cpu

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


def managed(*entries: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """An object whose job `node` has a label, with these entries of managedFields."""
    fields = [{"manager": manager, "fieldsV1": fields} for manager, fields in entries]
    return {"metadata": {"managedFields": fields}, "spec": {"jobs": [{"name": "node"}]}}


def field_set(key: str = '{"name":"node"}', label: str = "f:a") -> dict[str, Any]:
    """A field set with one label of the list entry of this key."""
    return {"f:spec": {"f:jobs": {f"k:{key}": {".": {}, "f:metadata": {"f:labels": {label: {}}}}}}}


def test_the_fields_of_a_manager_are_those_of_all_its_entries() -> None:
    """One for each operation; those of other managers do not count."""
    other = FieldPath((*PATH.path[:-1], "b"))
    body = managed(("muster", field_set()), ("kubectl", field_set(label="f:b")), ("muster", {}))
    assert owned_by(body, "muster", [PATH, other]) == {PATH}
    assert owned_by(body, "kubectl", [PATH, other]) == {other}


@pytest.mark.parametrize(
    "fields", [field_set('{"name":"node","n":1}'), field_set('{"name":"x"}'), {"f:spec": []}]
)
def test_other_field_sets_do_not_count(fields: dict[str, Any]) -> None:
    """The API server stores any field set that a client writes."""
    assert owned_by(managed(("muster", fields)), "muster", [PATH]) == frozenset()


def test_managed_fields_of_a_megabyte_take_little_time() -> None:
    """Thousands of keys for one name, in thousands of entries."""
    many: dict[str, Any] = {f'k:{{"name":"node","n":{number}}}': {"f:a": {}} for number in range(20_000)}
    entries = [("muster", {"f:spec": {"f:jobs": many}})] * 5_000
    body = managed(*entries, ("muster", field_set()))
    body["spec"]["jobs"] *= 5_000
    with cpu.at_most(0.1):
        assert owned_by(body, "muster", [PATH]) == frozenset()
    body = managed(*entries[: MANAGER_ENTRIES - 1], ("muster", field_set()))
    assert owned_by(body, "muster", [PATH]) == {PATH}

"""Definitions of custom resources that would take much memory; the usual ones are contract cases."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from muster.simulator.apiserver.fields.decoding import Decoder, with_defaults
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.status import ApiError
from muster.simulator.apiserver.validation import custom


def _lists_in_lists(levels: int) -> dict[str, Any]:
    """A schema of an object with a list of twelve objects, each with such a list."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        items = {"type": "array", "default": [{}] * 12, "items": schema}
        schema = {"type": "object", "properties": {"a": items}}
    return schema


@pytest.mark.thorough
def test_defaults_that_multiply_are_refused() -> None:
    """Seven levels of twelve would be 36 million objects; etcd would not store them."""
    assert len(with_defaults({}, _lists_in_lists(3))["a"][0]["a"][0]["a"]) == 12
    tracemalloc.start()
    with pytest.raises(ApiError) as refusal:
        with_defaults({}, _lists_in_lists(7))
    assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    tracemalloc.stop()
    assert (refusal.value.code, refusal.value.message) == (500, "etcdserver: request is too large")


@pytest.mark.parametrize(("number", "returned"), [(1000, 10), (2, 100)])
def test_the_first_errors_are_returned(number: int, returned: int) -> None:
    """Each names all members of the enum: 5,000 of them took four gigabytes."""
    members = [f"member-{one:0100}" for one in range(number)]
    items = {"type": "string", "enum": members}
    schema = {"type": "object", "properties": {"l": {"type": "array", "items": items}}}
    errors = custom.check({"l": ["x"] * 5000}, None, schema)
    assert len(errors) == returned
    assert all(json.dumps(members[-1]) in error.detail for error in errors)


def test_a_hundred_unknown_fields_are_named() -> None:
    """The path of each may be long: 60,000 of 40,000 characters took gigabytes."""
    schema = {"type": "object", "properties": {"spec": {"type": "object"}}}
    decoder = Decoder(Kind("example.com", "v1", "widgets", "Widget", schema=schema, definition={}), {})
    decoder.read({"spec": {f"unknown-{number}": 1 for number in range(1000)}})
    assert len(decoder.unknown) == 100

"""What the store keeps beside an object."""

from __future__ import annotations

import json

import pytest

from muster.simulator.apiserver.store import LARGEST_KEPT, ObjectRecord, Store


def record(text: str) -> ObjectRecord:
    """Return the record of an object with a text."""
    return ObjectRecord({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}})


@pytest.mark.parametrize("text", ["a", "\u00e9\U0001f600", "x" * LARGEST_KEPT])
def test_the_tail_is_the_rest_of_the_object(text: str) -> None:
    """In UTF-8: escapes would take up to six bytes for one."""
    tail = record(text).tail
    assert json.loads(b"{" + tail) == {"data": {"a": text}}
    assert tail.decode().count("\\") == 0


def test_a_lone_surrogate_is_a_question_mark() -> None:
    """A file may have one, which UTF-8 cannot."""
    assert json.loads(b"{" + record("\ud800").tail) == {"data": {"a": "?"}}


def test_the_json_of_small_objects_is_kept() -> None:
    """Those of large ones would take the memory of the objects once more."""
    small, large = record("a"), record("x" * LARGEST_KEPT)
    assert small.tail is small.tail
    assert large.tail is not large.tail


@pytest.mark.parametrize("version", ["9" * 4_301, "\u0663", "x", ""])
def test_a_version_that_is_no_number_of_64_bits_is_replaced(version: str) -> None:
    """Python makes neither a number of thousands of digits of a text, nor the text of one."""
    store = Store()
    loaded = {"metadata": {"name": "a", "namespace": "b", "resourceVersion": version}}
    assert store.load(("", "configmaps"), loaded).version == 2
    other = {"metadata": {"name": "c", "namespace": "b"}}
    assert store.put(("", "configmaps"), other).version == 3

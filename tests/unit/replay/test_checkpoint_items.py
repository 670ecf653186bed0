"""A moment of a recording has what can be replayed, whatever the users of the cluster wrote."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects import yaml_files
from muster.objects.memory import memory_of
from muster.policy.limits import SNAPSHOT_BYTES
from muster.replay.recording import checkpoint_items
from muster.replay.recording.checkpoint_items import DENSE, MOST_VALUES, NO_ROOM, CheckpointItems
from muster.replay.recording.redaction import LEFT_OUT, redact_runtime_snapshot, without_secrets
from muster.replay.snapshots import Object
from tests.support import cpu


def a_pod(namespace: str = "team", **fields: Any) -> Object:
    """A pod with five JSON values and those of the fields."""
    return {"kind": "Pod", "metadata": {"name": "a", "namespace": namespace}, **fields}


def test_an_object_of_too_many_values_is_left_out() -> None:
    """A megabyte of variables would take a second to become YAML."""
    items = CheckpointItems()
    values = MOST_VALUES - 6
    (text,) = items.yaml_of(a_pod(spec=[""] * values))
    assert yaml_files.load(text) == [a_pod(spec=[""] * values)]
    assert items.yaml_of(a_pod(spec=[""] * (values + 1))) == []
    assert items.yaml_of(a_pod(spec={str(number): {} for number in range(values + 1)})) == []
    assert dict(items.left_out) == {DENSE: 2}


def test_an_object_is_counted_up_to_the_limit() -> None:
    """Not to its end."""
    large = a_pod(spec=[[{}] * 1_000] * 100_000)
    with cpu.at_most(0.5):
        assert CheckpointItems().yaml_of(large) == []


@pytest.mark.parametrize(
    ("limit", "fields"),
    [
        pytest.param("CHECKPOINT_MEMORY", {"spec": [""] * 94}, id="memory"),
        pytest.param("CHECKPOINT_BYTES", {"spec": "a" * 9_950}, id="bytes"),
    ],
)
def test_a_moment_has_no_more_than_can_be_replayed(
    monkeypatch: pytest.MonkeyPatch, limit: str, fields: dict[str, Any]
) -> None:
    """A namespace gets three quarters of it, so that others have room."""
    memory = memory_of(without_secrets(a_pod("a", **fields)))
    most = {"CHECKPOINT_MEMORY": 10 * memory + 100, "CHECKPOINT_BYTES": 101_000}[limit]
    monkeypatch.setattr(checkpoint_items, limit, most)
    items = CheckpointItems()
    written = [len(items.yaml_of(a_pod(namespace, **fields))) for namespace in ["a"] * 9 + ["b"] * 4]
    assert written == [1] * 7 + [0] * 2 + [1] * 3 + [0]
    assert dict(items.left_out) == {NO_ROOM: 3}


def test_smaller_objects_find_room_beside_one_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that is left out takes none."""
    monkeypatch.setattr(checkpoint_items, "CHECKPOINT_MEMORY", 10_000)
    items = CheckpointItems()
    assert items.yaml_of(a_pod(spec=[""] * 1_000)) == []
    assert items.yaml_of(a_pod())


def test_managed_fields_and_what_is_left_out_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not written."""
    monkeypatch.setattr(checkpoint_items, "CHECKPOINT_BYTES", 1_000)
    pod = a_pod(spec={"containers": [{"args": ["a" * 10_000]}]})
    pod["metadata"]["managedFields"] = [{"manager": "b" * 10_000}]
    (text,) = CheckpointItems().yaml_of(pod)
    assert len(text) < 200


def a_snapshot(text: Any) -> Object:
    """A ConfigMap with the Trainer's copy of a runtime."""
    return {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "team"}, "data": {"runtime": text}}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The copies of runtimes that were parsed."""
    texts: list[str] = []

    def noted(text: str) -> str:
        texts.append(text)
        return redact_runtime_snapshot(text)

    monkeypatch.setattr(checkpoint_items, "redact_runtime_snapshot", noted)
    return texts


def test_a_copy_of_a_runtime_without_room_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, parsed: list[str]
) -> None:
    """It takes a quarter of a second, and there may be thousands; the rest is counted."""
    text = '{"a": "%s"}' % ("b" * 10_000)
    monkeypatch.setattr(checkpoint_items, "CHECKPOINT_BYTES", 45_000)
    items = CheckpointItems()
    written = [len(items.yaml_of_snapshot(a_snapshot(text))) for _ in range(6)]
    assert written == [1, 1, 1, 0, 0, 0]
    assert len(parsed) == 3
    assert dict(items.left_out) == {NO_ROOM: 3}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "{}," * MOST_VALUES + "{}]", id="JSON"),
        pytest.param("- 1\n" * (MOST_VALUES + 1), id="YAML"),
    ],
)
def test_a_copy_of_a_runtime_of_too_many_values_is_not_parsed(parsed: list[str], text: str) -> None:
    """Its YAML is one text, but its values are parsed as those of any other object."""
    items = CheckpointItems()
    assert items.yaml_of_snapshot(a_snapshot(text)) == []
    assert parsed == []
    assert dict(items.left_out) == {DENSE: 1}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" + "{}," * SNAPSHOT_BYTES + "{}]", id="too long"),
        pytest.param(5, id="no text"),
    ],
)
def test_a_copy_of_a_runtime_that_nobody_reads_is_written_without_its_text(text: Any) -> None:
    """Its ConfigMap exists for the steps."""
    (written,) = CheckpointItems().yaml_of_snapshot(a_snapshot(text))
    assert yaml_files.load(written) == [a_snapshot(LEFT_OUT)]

"""`muster replay` of events whose JSON is inside of a string, which a file counts as one value."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from muster.replay.recorded_requests import MOST_VALUES
from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import a_capture, a_job, a_namespace, an_event, as_yaml

DENSE = "[" + "{}," * MOST_VALUES + "{}]"
TO = ["--to", "http://127.0.0.1:9/"]
HOW = {"here": [], "to a function": TO, "to a function, structured": [*TO, "--mode", "structured"]}


def in_base64() -> dict[str, Any]:
    """An event whose data are Base64."""
    return an_event() | {"data": None, "data_base64": base64.b64encode(DENSE.encode()).decode()}


@pytest.mark.parametrize("options", HOW.values(), ids=HOW)
@pytest.mark.parametrize(
    "event",
    [
        pytest.param(a_capture(an_event()) | {"body": DENSE}, id="a body"),
        pytest.param(in_base64(), id="Base64"),
        pytest.param(
            {"headers": {"content-type": "application/cloudevents+json"}, "body": json.dumps(in_base64())},
            id="Base64 in a body",
        ),
    ],
)
def test_dense_json_in_a_string_is_refused(
    muster: Muster, filed: Filed, event: dict[str, Any], options: list[str]
) -> None:
    """Half a megabyte of packed text took 3.2 GiB; the functions would refuse the event as well."""
    result = muster("replay", filed("e.json", event), *options)
    assert result.exit_code == 2
    assert_names(result.stderr, "e.json", str(MOST_VALUES))


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(a_capture(an_event()) | {"body": DENSE}, id="a body"),
        pytest.param(in_base64(), id="Base64"),
    ],
)
def test_plan_refuses_it_too(muster: Muster, filed: Filed, event: dict[str, Any]) -> None:
    """1.1 MB of packed text took 2.9 GiB."""
    objects = filed("c.yaml", as_yaml(a_namespace(), a_job()))
    result = muster("plan", "create_workload", "--event", filed("e.json", event), "--objects", objects)
    assert result.exit_code == 2
    assert_names(result.stderr, "e.json", str(MOST_VALUES))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('{"specversion": "1.0", "data": ' + "[" * 40_000, id="deep data"),
        pytest.param("\ud800", id="half a character"),
    ],
)
def test_odd_structured_bodies_are_reported(muster: Muster, filed: Filed, body: str) -> None:
    """As bad input, with the file."""
    captured = {"headers": {"content-type": "application/cloudevents+json"}, "body": body}
    result = muster("replay", filed("e.json", json.dumps(captured)))
    assert result.exit_code == 2
    assert_names(result.stderr, "e.json")
    assert "Error" not in result.stderr


@pytest.mark.parametrize("options", HOW.values(), ids=HOW)
def test_deep_json_in_a_string_is_no_bug(muster: Muster, filed: Filed, options: list[str]) -> None:
    """The time of an event is looked for in any body, and data in structured mode are parsed."""
    captured = a_capture(an_event())
    del captured["headers"]["Ce-Time"]
    result = muster("replay", filed("e.json", captured | {"body": "[" * 50_000}), *options)
    assert result.exit_code in {1, 2}
    assert "Error" not in result.stderr

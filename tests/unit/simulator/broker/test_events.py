"""The broker accepts events in both modes and passes them on unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.simulator.broker import CloudEvent, NotAnEventError
from tests.support import cpu
from tests.support.recorded_events import recorded, title

HEADERS = {
    "ce-specversion": "1.0",
    "ce-id": "1",
    "ce-source": "/here",
    "ce-type": "dev.muster.sweep",
    "content-type": "application/json",
}
STRUCTURED = {"specversion": "1.0", "id": "1", "source": "/here", "type": "dev.muster.sweep"}


@pytest.mark.parametrize(
    "event", [pytest.param(event, id=title(event)) for event in recorded("resource") + recorded("reference")]
)
def test_a_recorded_event_survives_both_modes(event: dict[str, Any]) -> None:
    """From structured to binary to structured it stays the same, an empty namespace included."""
    read = CloudEvent.from_structured(event)
    assert CloudEvent.from_http(read.headers(), read.data).structured() == event
    body = json.dumps(event).encode()
    content = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
    assert CloudEvent.from_http(content, body).structured() == event


def test_header_names_are_read_in_any_case() -> None:
    """HTTP says that names have no case; the values stay as they are."""
    shouted = {name.upper(): value for name, value in HEADERS.items()}
    assert CloudEvent.from_http(shouted, b"{}") == CloudEvent.from_http(HEADERS, b"{}")


def test_data_is_not_touched() -> None:
    """Binary data, broken JSON, whatever it is: the function is to judge."""
    event = CloudEvent.from_http(HEADERS, b"\x00{not json")
    assert event.data == b"\x00{not json"
    assert event.headers()["Content-Type"] == "application/json"


def test_binary_data_is_sent_in_base64() -> None:
    """Structured mode keeps bytes that are no JSON."""
    event = CloudEvent.from_http({**HEADERS, "content-type": "image/png"}, b"\x89PNG")
    assert event.structured()["data_base64"] == "iVBORw=="
    assert CloudEvent.from_structured(event.structured()) == event


def test_an_attribute_fits_into_a_header() -> None:
    """A source of 120 MiB with a blank took `muster replay` 1.5 GB, to escape it."""
    event = {**STRUCTURED, "source": "a b" + "x" * 1024 * 1024}
    with pytest.raises(NotAnEventError, match="source has more than"):
        CloudEvent.from_structured(event)


def test_an_escaped_attribute_fits_into_a_header_as_well() -> None:
    """A dead letter is read again; then the source of `muster replay` was too long."""
    event = {
        "specversion": "1.0",
        "id": "1",
        "type": "t",
        "source": "\N{LATIN SMALL LETTER E WITH ACUTE}" * 180_000,
    }
    with pytest.raises(NotAnEventError, match="source has more than"):
        CloudEvent.from_structured(event)


def test_the_first_year_has_four_digits() -> None:
    """The time that a broker passes on is one that the next reader accepts."""
    event = CloudEvent.from_http({**HEADERS, "ce-time": "0001-01-01T02:00:00.50+01:00"}, b"{}")
    assert event["time"] == "0001-01-01T01:00:00.5Z"
    assert CloudEvent.from_http(event.headers(), b"{}") == event


def test_values_that_are_no_strings_become_their_text() -> None:
    """An extension may be a number or a boolean in JSON; over HTTP it is text."""
    event = CloudEvent.from_structured({**STRUCTURED, "attempt": 3, "final": True, "nothing": None})
    assert (event["attempt"], event["final"], event["nothing"]) == ("3", "true", "")


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(" " * 250_000 + "!/", id="blanks"),
        pytest.param(" ;" * 125_000 + "/", id="semicolons"),
        pytest.param(";a=b" * 60_000 + "/", id="parameters"),
        pytest.param(';a="' * 60_001, id="quotes"),
    ],
)
def test_a_content_type_is_checked_in_linear_time(rest: str) -> None:
    """An event in a file that others wrote would keep `muster replay` for hours."""
    with cpu.at_most(2), pytest.raises(NotAnEventError):
        CloudEvent.from_structured({**STRUCTURED, "datacontenttype": f"a/b{rest}"})


@pytest.mark.parametrize("text", ['a/b ; c=d;e="f g" ; ', "text/plain;charset=utf-8", "a"])
def test_parameters_and_blanks_of_a_content_type_are_accepted(text: str) -> None:
    """As Go's mime.ParseMediaType accepts them."""
    assert CloudEvent.from_structured({**STRUCTURED, "datacontenttype": text})["datacontenttype"]


@pytest.mark.parametrize("missing", ["ce-id", "ce-source", "ce-type"])
def test_a_missing_attribute_is_not_invented(missing: str) -> None:
    """Absent and empty are the same complaint, and it names the attribute."""
    complaints = set()
    for headers in ({**HEADERS, missing: ""}, {k: v for k, v in HEADERS.items() if k != missing}):
        with pytest.raises(NotAnEventError, match=rf"\b{missing.removeprefix('ce-')}\b") as refused:
            CloudEvent.from_http(headers, b"")
        complaints.add(str(refused.value))
    assert len(complaints) == 1


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b"{}", id="no event at all"),
        pytest.param({"ce-id": "1"}, b"", id="no specversion header"),
        pytest.param({**HEADERS, "ce-specversion": "2.0"}, b"", id="another specversion"),
        pytest.param({"content-type": "application/cloudevents-batch+json"}, b"[]", id="a batch"),
        pytest.param({"content-type": "application/cloudevents+json"}, b"{", id="broken JSON"),
        pytest.param({"content-type": "application/cloudevents+json"}, b"[]", id="a list"),
        pytest.param(
            {"content-type": "application/cloudevents+json"},
            json.dumps({**STRUCTURED, "data_base64": "?"}).encode(),
            id="broken base64",
        ),
    ],
)
def test_a_request_without_an_event_is_refused(headers: dict[str, str], body: bytes) -> None:
    """Each with a sentence that says what is wrong."""
    with pytest.raises(NotAnEventError):
        CloudEvent.from_http(headers, body)

"""What a request must be to count as an event; the replays have what the real adapter sends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.events.parse import OtherEvent, Sweep, UnreadableEvent, parse

STRUCTURED = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "7",
    "source": "https://10.96.0.1:443",
    "type": "dev.knative.apiserver.resource.update",
    "datacontenttype": "application/json",
    "data": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "4bac"}},
}


def as_binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in binary mode."""
    attributes = {name: value for name, value in event.items() if name not in {"data", "datacontenttype"}}
    headers = {f"Ce-{name.title()}": value for name, value in attributes.items()}
    return headers | {"Content-Type": event["datacontenttype"]}, json.dumps(event["data"]).encode()


def as_structured(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in structured mode."""
    return STRUCTURED, json.dumps(event).encode()


@pytest.mark.parametrize("mode", [as_binary, as_structured])
def test_other_events(mode: Any) -> None:
    """The timer of a PingSource is a sweep; any other type is left to the step."""
    assert parse(*mode(EVENT | {"type": "dev.knative.sources.ping"})) == Sweep("7")
    assert parse(*mode(EVENT | {"type": "t", "data": {"a": 1}})) == OtherEvent("7", "t", {"a": 1})


@pytest.mark.parametrize("change", [{"id": ""}, {"specversion": "0.3"}, {"time": "2026-11-21T08:17:25"}])
def test_unreadable_attributes(change: dict[str, str]) -> None:
    """An attribute that breaks CloudEvents is named as it was sent."""
    (path,) = change
    with pytest.raises(UnreadableEvent, match=f"^{path}: "):
        parse(*as_structured(EVENT | change))
    with pytest.raises(UnreadableEvent, match=f"^ce-{path}: "):
        parse(*as_binary(EVENT | change))


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (None, "data"),
        ([], "data"),
        ({"apiVersion": "v1", "kind": "Pod"}, "data.metadata"),
        ({"kind": "Pod", "metadata": {}}, "data.apiVersion"),
        (EVENT["data"] | {"kind": 1}, "data.kind"),
        (EVENT["data"] | {"apiVersion": "v1/../v2"}, "data.apiVersion"),
        (EVENT["data"] | {"metadata": {"name": "../p"}}, "data.metadata.name"),
    ],
)
def test_unreadable_objects(data: Any, path: str) -> None:
    """A field that names the object must be a name of Kubernetes, and the refusal has its path."""
    with pytest.raises(UnreadableEvent, match=f"^{path}: "):
        parse(*as_structured(EVENT | {"data": data}))

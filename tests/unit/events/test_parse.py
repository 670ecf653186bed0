"""What a request must be to count as an event, and what each event means.

The events in `recorded/` were sent by Knative's ApiServerSource adapter v0.47.0 over a kube-apiserver
v1.37.1; there they stand in structured mode, `as_binary` gives them the form in which the adapter sent them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.events.model import Happened, OtherEvent, ResourceEvent, Sweep
from muster.events.parse import parse
from muster.objects.meta import ObjectRef

RECORDED = Path(__file__).parent / "recorded"
STRUCTURED = {"Content-Type": "application/cloudevents+json"}

TRAINJOB = ObjectRef(
    "trainer.kubeflow.org/v1alpha1", "TrainJob", "team-a", "llama", "4bac6118-258c-420e-8e89-affdf4899000"
)


def recorded(name: str) -> dict[str, Any]:
    """A recorded event by its file name."""
    event: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return event


def as_binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in binary mode."""
    headers = {
        f"Ce-{name.title()}": value
        for name, value in event.items()
        if name not in {"data", "datacontenttype"}
    }
    return headers | {"Content-Type": event["datacontenttype"]}, json.dumps(event["data"]).encode()


def as_structured(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """Headers and body of an event in structured mode."""
    return STRUCTURED, json.dumps(event).encode()


def test_there_are_recorded_events() -> None:
    """Tests over an empty folder would prove nothing."""
    assert len(list(RECORDED.glob("*.json"))) == 5


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_both_modes_say_the_same(path: Path) -> None:
    """An event means the same in binary and in structured mode."""
    event = json.loads(path.read_text())
    assert parse(*as_binary(event)) == parse(*as_structured(event))


def test_resource_mode_carries_the_object_and_its_uid() -> None:
    """In Resource mode the event names the UID and brings the whole object along."""
    event = recorded("trainjob-added.resource")
    assert parse(*as_binary(event)) == ResourceEvent(event["id"], Happened.ADD, TRAINJOB, event["data"])


@pytest.mark.parametrize(
    ("name", "happened", "ref"),
    [
        pytest.param(
            "podgroup-updated.reference",
            Happened.UPDATE,
            ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", "llama-trainer-6161e02c"),
            id="Reference mode names the object without its UID",
        ),
        pytest.param(
            "runtime-added.reference",
            Happened.ADD,
            ObjectRef("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "", "torch-gang"),
            id="a cluster-scoped object has an empty namespace, also where the data has none at all",
        ),
    ],
)
def test_reference_mode(name: str, happened: Happened, ref: ObjectRef) -> None:
    """In Reference mode only the name is known."""
    event = recorded(name)
    assert parse(*as_binary(event)) == ResourceEvent(event["id"], happened, ref)


@pytest.mark.parametrize(
    ("name", "happened", "kind", "namespace"),
    [
        pytest.param(
            "workload-deleted.resource",
            Happened.DELETE,
            "Workload",
            "team-a",
            id="a deletion is parsed as one",
        ),
        pytest.param(
            "runtime-updated.resource",
            Happened.UPDATE,
            "ClusterTrainingRuntime",
            "",
            id="the namespace of a cluster-scoped object is empty",
        ),
    ],
)
def test_resource_mode(name: str, happened: Happened, kind: str, namespace: str) -> None:
    """What happened, and to what, is read from type and data."""
    event = parse(*as_binary(recorded(name)))
    assert isinstance(event, ResourceEvent)
    assert (event.happened, event.ref.kind, event.ref.namespace) == (happened, kind, namespace)


def test_data_wins_over_extensions() -> None:
    """Where extensions and data disagree the data is right: ceOverrides may replace an extension."""
    event = recorded("trainjob-added.resource") | {"kind": "Job", "namespace": "elsewhere", "name": "other"}
    parsed = parse(*as_binary(event))
    assert isinstance(parsed, ResourceEvent)
    assert parsed.ref == TRAINJOB


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({"type": "dev.muster.sweep"}, Sweep("7"), id="Muster's own sweep event"),
        pytest.param({"type": "dev.knative.sources.ping"}, Sweep("7"), id="a PingSource's event is a sweep"),
        pytest.param(
            {"type": "dev.knative.sources.ping", "data": "not an object"},
            Sweep("7"),
            id="what a sweep carries is not read",
        ),
        pytest.param(
            {"type": "com.example.order"},
            OtherEvent("7", "com.example.order"),
            id="another sender's type is foreign",
        ),
        pytest.param(
            {"type": "dev.knative.apiserver.resource.patch"},
            OtherEvent("7", "dev.knative.apiserver.resource.patch"),
            id="a verb that ApiServerSource does not know is foreign",
        ),
        pytest.param(
            {"type": "dev.muster.create_workload.WorkloadCreated"},
            OtherEvent("7", "dev.muster.create_workload.WorkloadCreated"),
            id="Muster's own replies are foreign",
        ),
        pytest.param(
            {"type": "com.example.order", "team": None, "traceparent": "00-ab-cd-01", "hops": 3, "dry": True},
            OtherEvent("7", "com.example.order"),
            id="unknown extensions are welcome, and null means absent",
        ),
    ],
)
def test_events_that_are_about_no_object(change: dict[str, Any], want: Sweep | OtherEvent) -> None:
    """Sweeps are distinguished from events that are none of Muster's business."""
    event = {"specversion": "1.0", "id": "7", "source": "/test", "type": "t"} | change
    assert parse(*as_structured(event)) == want


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(
            STRUCTURED | {"ce-id": "stray", "ce-type": "stray"},
            id="stray ce- headers do not change the mode: the content type decides",
        ),
        pytest.param(
            {"content-type": "Application/CloudEvents+JSON; charset=UTF-8"},
            id="the content type is compared without case and parameters",
        ),
    ],
)
def test_content_type_decides_the_mode(headers: dict[str, str]) -> None:
    """Structured mode is recognised by the content type alone."""
    event = recorded("trainjob-added.resource")
    parsed = parse(headers, json.dumps(event).encode())
    assert isinstance(parsed, ResourceEvent)
    assert (parsed.id, parsed.ref) == (event["id"], TRAINJOB)


@pytest.mark.parametrize(
    "content_type",
    ["Application/JSON", "application/json; charset=utf-8", "application/merge-patch+json", None],
)
def test_json_data_of_any_spelling(content_type: str | None) -> None:
    """Data is JSON if its content type says so in any spelling, or says nothing."""
    headers, body = as_binary(recorded("trainjob-added.resource"))
    del headers["Content-Type"]
    parsed = parse(headers | ({"content-type": content_type} if content_type else {}), body)
    assert isinstance(parsed, ResourceEvent)
    assert parsed.ref == TRAINJOB


def test_data_in_base64() -> None:
    """JSON data may come as data_base64."""
    event = recorded("podgroup-updated.reference")
    event["data_base64"] = "eyJhcGlWZXJzaW9uIjoidjEiLCJraW5kIjoiUG9kIiwibmFtZSI6InAiLCJuYW1lc3BhY2UiOiJuIn0="
    del event["data"]
    parsed = parse(*as_structured(event))
    assert isinstance(parsed, ResourceEvent)
    assert parsed.ref == ObjectRef("v1", "Pod", "n", "p")


def test_percent_encoded_header() -> None:
    """Header values are percent-decoded, as the HTTP binding says."""
    headers, body = as_binary(recorded("trainjob-added.resource"))
    assert parse(headers | {"Ce-Id": "a%20b%C3%BC"}, body).id == "a bü"

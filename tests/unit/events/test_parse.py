"""What a request must be to count as an event, and what each event means.

The events in `recorded/` were sent by Knative's ApiServerSource adapter v0.47.0 over a kube-apiserver
v1.37.1; there they stand in structured mode, `as_binary` gives them the form in which the adapter sent them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.events.parse import Happened, OtherEvent, ResourceEvent, Sweep, UnreadableEvent, parse
from muster.objects.meta import ObjectRef

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.json"))
STRUCTURED = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
TRAINJOB = ObjectRef(
    "trainer.kubeflow.org/v1alpha1", "TrainJob", "team-a", "llama", "4bac6118-258c-420e-8e89-affdf4899000"
)
GROUP = ObjectRef("scheduling.k8s.io/v1beta1", "PodGroup", "team-a", "llama-trainer-6161e02c")
RUNTIME = ObjectRef("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "", "torch-gang")
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


@pytest.mark.parametrize(
    ("name", "happened", "ref"),
    [
        pytest.param("trainjob-added.resource", Happened.ADD, TRAINJOB, id="Resource mode has the UID"),
        pytest.param("podgroup-updated.reference", Happened.UPDATE, GROUP, id="Reference mode has none"),
        pytest.param("runtime-added.reference", Happened.ADD, RUNTIME, id="a cluster-scoped object"),
    ],
)
def test_a_change_of_an_object(name: str, happened: Happened, ref: ObjectRef) -> None:
    """What happened, and to what, is read from type and data, whatever the extensions say."""
    (event,) = (json.loads(path.read_text()) for path in RECORDED if path.stem == name)
    whole = event["data"] if name.endswith("resource") else None
    changed = event | {"kind": "Job", "namespace": "elsewhere", "name": "other"}
    assert parse(*as_binary(changed)) == ResourceEvent(event["id"], happened, ref, whole)


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

"""A broker and its triggers, read from manifests that an API server would refuse."""

from __future__ import annotations

from typing import Any

import pytest

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker import Wiring
from muster.simulator.broker.delivery import Delivery

Object = dict[str, Any]


def an_object(kind: str, spec: Any = None, namespace: Any = "muster-system") -> Object:
    """Return a Broker, Trigger or PingSource called `muster`."""
    group = "sources.knative.dev" if kind == "PingSource" else "eventing.knative.dev"
    metadata = {"name": "muster", "namespace": namespace}
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


SUBSCRIBER = {"ref": {"kind": "Service", "name": "create-workload"}}


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        pytest.param(
            an_object("Broker", namespace=None), "metadata.namespace", id="a Broker of no namespace"
        ),
        pytest.param(an_object("Trigger"), "spec.broker", id="a Trigger without a spec"),
        pytest.param(an_object("Trigger", ["broker"]), "spec.broker", id="a Trigger whose spec is a list"),
        pytest.param(
            an_object("Trigger", {"broker": "muster", "subscriber": "x"}),
            "spec.subscriber",
            id="a Trigger whose subscriber is a string",
        ),
        pytest.param(an_object("PingSource", {}), "spec.sink", id="a PingSource without a sink"),
    ],
)
def test_a_missing_field_is_named(wrong: Object, field: str) -> None:
    """Kustomizations of others are read too: the command prints one line."""
    rest = [an_object("Broker"), an_object("Trigger", {"broker": "muster", "subscriber": SUBSCRIBER})]
    objects = [wrong, *(body for body in rest if body["kind"] != wrong["kind"])]
    with pytest.raises(UnsupportedManifestError, match=rf"{wrong['kind']} muster: {field}"):
        Wiring.from_manifests(objects)
    assert Wiring.from_manifests(rest).name == "muster"


NULLS = {"retry": None, "timeout": None, "backoffPolicy": None, "backoffDelay": None}


def test_null_is_a_field_that_is_not_set() -> None:
    """As an API server stores an object."""
    delivery = {**NULLS, "deadLetterSink": {**SUBSCRIBER, "uri": None}}
    ping = {"sink": {"ref": {"name": "muster"}}, "schedule": None, "timezone": None, "ceOverrides": None}
    trigger = {"broker": "muster", "subscriber": {**SUBSCRIBER, "uri": None}, "filters": None}
    wiring = Wiring.from_manifests(
        [
            an_object("Broker", {"delivery": delivery}),
            an_object("Trigger", {**trigger, "delivery": NULLS}),
            an_object("PingSource", ping),
        ]
    )
    (read,) = wiring.triggers
    assert (read.subscriber, read.delivery) == ("create-workload", Delivery(dead_letter="create-workload"))
    assert [source.schedule.fields for source in wiring.pings] == ["* * * * *"]


@pytest.mark.parametrize("kind", ["Broker", "Trigger", "PingSource"])
@pytest.mark.parametrize("namespace", ["", "..", "a/b", "a\nb", "x" * 64, 5, {}])
def test_a_namespace_is_a_name(kind: str, namespace: Any) -> None:
    """It is a part of paths."""
    with pytest.raises(UnsupportedManifestError, match=rf"{kind} muster: metadata.namespace"):
        Wiring.from_manifests([an_object("Broker"), an_object(kind, {}, namespace)])

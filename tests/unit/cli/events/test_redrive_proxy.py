"""`muster redrive` reaches a broker in the cluster through the API server's proxy of Services."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.operator.redrive import through_api_server
from muster.policy.owner_status.conditions import MESSAGE_LIMIT
from tests.unit.cli.conftest import assert_names
from tests.unit.cli.events.test_redrive import HOME, JOB_ADDED, KNATIVE
from tests.unit.cluster.scripted import ScriptedResponse, serving


def test_clusters_own_broker_is_reached_through_the_api_server() -> None:
    """Its address resolves in the cluster only; the API server's proxy of Services leads there."""
    address = "http://broker-ingress.knative-eventing.svc.cluster.local/muster-system/muster"
    broker = {"metadata": {"name": "muster"}, "status": {"address": {"url": address}}}
    with serving(
        ScriptedResponse(body=broker),
        ScriptedResponse(202),
        ScriptedResponse(503, {"message": "no endpoints"}),
    ) as script:
        send = through_api_server(Client.for_server(script.url), HOME, "muster")
        assert send(JOB_ADDED) == ""
        refusal = send(JOB_ADDED)
    assert_names(refusal, address, "503", "no endpoints")
    _, request, _ = script.requests
    assert (request.method, request.headers["content-type"]) == ("POST", "application/cloudevents+json")
    assert request.path == (
        "/api/v1/namespaces/knative-eventing/services/http:broker-ingress:80/proxy/muster-system/muster"
    )
    assert request.body == JOB_ADDED


@pytest.mark.parametrize("message", ["x" * 1_000_000, ["x"] * 100_000])
def test_the_message_of_a_refusal_is_cut(message: Any) -> None:
    """A proxy may answer 64 MiB to each of a hundred letters, which take a minute to escape."""
    broker = {"metadata": {"name": "muster"}, "status": {"address": {"url": f"{KNATIVE}/{HOME}/muster"}}}
    with serving(ScriptedResponse(body=broker), ScriptedResponse(500, {"message": message})) as script:
        refusal = through_api_server(Client.for_server(script.url), HOME, "muster")(JOB_ADDED)
    assert_names(refusal, KNATIVE, "500")
    assert len(refusal) < 2 * MESSAGE_LIMIT


@pytest.mark.parametrize(
    ("address", "service"),
    [
        pytest.param(f"{KNATIVE}/{HOME}/muster", "http:broker-ingress:80", id="Knative's"),
        pytest.param(
            f"https://broker-ingress.knative-eventing.svc/{HOME}/muster", "https:broker-ingress:443", id="TLS"
        ),
        pytest.param(
            f"http://kafka-broker-ingress.knative-eventing.svc.example.com/{HOME}/muster",
            "http:kafka-broker-ingress:80",
            id="on Kafka",
        ),
    ],
)
def test_the_ingresses_of_knative_are_addressed(address: str, service: str) -> None:
    """At the path of the broker."""
    broker = {"metadata": {"name": "muster"}, "status": {"address": {"url": address}}}
    with serving(ScriptedResponse(body=broker), ScriptedResponse(202)) as script:
        assert through_api_server(Client.for_server(script.url), HOME, "muster")(JOB_ADDED) == ""
    assert script.requests[1].path == (
        f"/api/v1/namespaces/knative-eventing/services/{service}/proxy/{HOME}/muster"
    )

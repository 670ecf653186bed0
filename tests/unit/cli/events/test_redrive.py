"""`muster redrive` sends dead letters to the broker again, and deletes those that were accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.events.dead_letters import MOST_BYTES, SELECTOR, of_request, to_config_map
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.operator.redrive import through_api_server
from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Muster, assert_names
from tests.unit.cluster.scripted import ScriptedResponse, serving
from tests.unit.events.test_dead_letters import EVENT, FAILURE, structured

HOME = "muster-system"


class RedriveCluster:
    """An embedded API server with dead letters."""

    def __init__(self, server: ApiServer, kubeconfig: Path) -> None:
        """Create the namespace of Muster."""
        kubeconfig.write_text(server.kubeconfig())
        self.kubeconfig = str(kubeconfig)
        self.client = Client.for_server(server.url)
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        self.client.create(NAMESPACES, body, manager="test")

    def letters(self) -> list[str]:
        """The names of the dead letters."""
        return [obj["metadata"]["name"] for obj in self.client.list(CONFIGMAPS, HOME, labels=SELECTOR)]

    def store(self, **change: Any) -> str:
        """Store a dead letter; its name."""
        letter = of_request(*structured(EVENT | FAILURE | change))
        self.client.create(CONFIGMAPS, to_config_map(letter, HOME), manager="test")
        return letter.name


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedriveCluster]:
    """A cluster without dead letters."""
    with ApiServer() as server:
        yield RedriveCluster(server, tmp_path / "kubeconfig")


def test_the_list_names_the_function_and_its_answer(muster: Muster, cluster: RedriveCluster) -> None:
    """One row for each letter, also of a ConfigMap that holds no event any more."""
    for arguments in ([], ["--all"]):
        assert muster("redrive", "--kubeconfig", cluster.kubeconfig, *arguments).stdout == "no dead letters\n"
    name, unanswered = cluster.store(), cluster.store(id="2", knativeerrordest="", knativeerrorcode="")
    broken = to_config_map(of_request(*structured(EVENT | {"id": "3"})), HOME)
    cluster.client.create(CONFIGMAPS, broken | {"data": {}}, manager="test")
    result = muster("redrive", "--kubeconfig", cluster.kubeconfig)
    assert result.exit_code == 0
    assert_names(result.stdout, name, "create-workload", '500 {"reason": "Invalid"}', "Job team-a/llama")
    assert_names(result.stdout, broken["metadata"]["name"])
    entries = json.loads(muster("redrive", "--kubeconfig", cluster.kubeconfig, "-o", "json").stdout)
    assert {entry["name"]: entry["function"] for entry in entries}[unanswered] == "-"


def test_what_the_broker_accepts_is_deleted(muster: Muster, cluster: RedriveCluster) -> None:
    """A letter that the broker refuses, or redirects, or that has lost its data, is kept."""
    cluster.store(id="1")
    kept = {
        cluster.store(id="2"),
        cluster.store(id="3"),
        cluster.store(id="4", data={"words": "x" * MOST_BYTES}),
    }
    answers = ScriptedResponse(202), ScriptedResponse(503), ScriptedResponse(302, headers={"Location": "/"})
    with serving(*answers) as broker:
        result = muster("redrive", "--kubeconfig", cluster.kubeconfig, "--all", "--to", broker.url)
    assert result.exit_code == 1
    assert len(cluster.letters()) == len(kept)
    assert all(request.body["musterredrive"] == "1" for request in broker.requests)


def test_named_letters_alone_are_sent(muster: Muster, cluster: RedriveCluster) -> None:
    """A name that is none is bad input."""
    first, second = cluster.store(), cluster.store(id="2")
    with serving(ScriptedResponse(202)) as broker:
        assert muster("redrive", "--kubeconfig", cluster.kubeconfig, first, "--to", broker.url).exit_code == 0
    assert cluster.letters() == [second]
    unknown = muster("redrive", "--kubeconfig", cluster.kubeconfig, "dead-letter-x")
    assert unknown.exit_code == 2
    assert_names(unknown.stderr, "dead-letter-x")


def test_a_broker_that_is_not_there(muster: Muster, cluster: RedriveCluster) -> None:
    """On a cluster without Knative the broker has to be named."""
    name = cluster.store()
    result = muster("redrive", "--kubeconfig", cluster.kubeconfig, "--all")
    assert result.exit_code == 1
    assert_names(result.stderr, "Broker muster-system/muster", "--to")
    assert cluster.letters() == [name]


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("http://broker-ingress.knative-eventing.svc.cluster.local", "http:broker-ingress:80"),
        ("https://kafka-broker-ingress.knative-eventing.svc", "https:kafka-broker-ingress:443"),
    ],
)
def test_the_broker_is_reached_through_the_api_server(host: str, service: str) -> None:
    """Its address resolves in the cluster only; the API server's proxy of Services leads there."""
    broker = {"metadata": {"name": "muster"}, "status": {"address": {"url": f"{host}/{HOME}/muster"}}}
    refused = ScriptedResponse(503, {"message": "no endpoints"})
    with serving(ScriptedResponse(body=broker), ScriptedResponse(202), refused) as script:
        send = through_api_server(Client.for_server(script.url), HOME)
        assert send(EVENT) == ""
        assert_names(send(EVENT), host, "503", "no endpoints")
    _, request, _ = script.requests
    assert request.path == f"/api/v1/namespaces/knative-eventing/services/{service}/proxy/{HOME}/muster"
    assert request.body == EVENT

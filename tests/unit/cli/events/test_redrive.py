"""`muster redrive` sends dead letters to the broker again, and deletes those that were accepted."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from click.testing import Result

from muster.cli.redrive import through_api_server
from muster.cluster.http.client import Client
from muster.events.dead_letters import MOST_BYTES, SELECTOR, of_request, to_config_map
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Muster, assert_names
from tests.unit.cluster.scripted import ScriptedResponse, serving
from tests.unit.events.test_dead_letters import EVENT, FAILURE, structured

HOME = "muster-system"


class RedriveCluster:
    """An embedded API server with dead letters."""

    def __init__(self, server: ApiServer, muster: Muster, kubeconfig: str) -> None:
        """Create the namespace of Muster."""
        self.client, self._muster, self._kubeconfig = Client.for_server(server.url), muster, kubeconfig
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

    def redrive(self, *arguments: str) -> Result:
        """Call `muster redrive` for the cluster."""
        return self._muster("redrive", "--kubeconfig", self._kubeconfig, *arguments)


@pytest.fixture
def cluster(server: ApiServer, muster: Muster, kubeconfig: str) -> RedriveCluster:
    """A cluster without dead letters."""
    return RedriveCluster(server, muster, kubeconfig)


def test_the_list_names_the_function_and_its_answer(cluster: RedriveCluster) -> None:
    """One row for each letter, also of a ConfigMap that holds no event any more."""
    for arguments in ([], ["--all"]):
        assert cluster.redrive(*arguments).stdout == "no dead letters\n"
    name, unanswered = cluster.store(), cluster.store(id="2", knativeerrordest="", knativeerrorcode="")
    broken = to_config_map(of_request(*structured(EVENT | {"id": "3"})), HOME)
    cluster.client.create(CONFIGMAPS, broken | {"data": {}}, manager="test")
    result = cluster.redrive()
    assert result.exit_code == 0
    assert_names(result.stdout, name, "create-workload", '500 {"reason": "Invalid"}', "Job team-a/llama")
    assert_names(result.stdout, broken["metadata"]["name"])
    entries = json.loads(cluster.redrive("-o", "json").stdout)
    assert {entry["name"]: entry["function"] for entry in entries}[unanswered] == "-"


def test_a_long_answer_is_cut_between_words_in_the_table(cluster: RedriveCluster) -> None:
    """JSON has all that the broker kept of it."""
    said = json.dumps({"reason": "UnexpectedError", "message": "words " * 40})
    cluster.store(knativeerrordata=base64.b64encode(said.encode()).decode())
    assert " words ...  dev.knative" in cluster.redrive().stdout
    assert json.loads(cluster.redrive("-o", "json").stdout)[0]["answer"] == f"500 {said}"


def test_what_the_broker_accepts_is_deleted(cluster: RedriveCluster) -> None:
    """A letter that the broker refuses, or redirects, or that has lost its data, is kept."""
    cluster.store(id="1")
    cluster.store(id="2")
    cluster.store(id="3")
    cluster.store(id="4", data={"words": "x" * MOST_BYTES})
    answers = ScriptedResponse(202), ScriptedResponse(503), ScriptedResponse(302, headers={"Location": "/"})
    with serving(*answers) as broker:
        result = cluster.redrive("--all", "--to", broker.url)
    assert result.exit_code == 1
    assert len(cluster.letters()) == 3
    assert all(request.body["musterredrive"] == "1" for request in broker.requests)


def test_named_letters_alone_are_sent(cluster: RedriveCluster) -> None:
    """A name that is none is bad input; on a cluster without Knative the broker has to be named."""
    first, second = cluster.store(), cluster.store(id="2")
    assert_names(cluster.redrive("--all").stderr, "Broker muster-system/muster", "--to")
    with serving(ScriptedResponse(202)) as broker:
        assert cluster.redrive(first, "--to", broker.url).exit_code == 0
    assert cluster.letters() == [second]
    unknown = cluster.redrive("dead-letter-x")
    assert unknown.exit_code == 2
    assert_names(unknown.stderr, "dead-letter-x")


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

"""Dead letters on the real API server: kept by the function's own account, sent again, forgotten once taken.

The API server's own proxy of Services chooses the endpoint; behind the address of its pod, which is nowhere,
listens the local broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from muster.cli import main
from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.data import EVENTING
from muster.events.dead_letters import SELECTOR
from muster.objects import yaml_files
from muster.objects.resources import CONFIGMAPS
from muster.operator.redrive import BROKERS
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.simulator.broker import Answer, Broker, Ingress, Wiring
from muster.simulator.broker.targets import HttpTarget
from muster.simulator.overlays import built, load
from tests.cluster import manifests, modules
from tests.cluster.cluster import RealCluster
from tests.unit.events.test_dead_letters import EVENT, FAILURE, binary
from tests.unit.runtime.fakes import NOW

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

HOME = "muster-system"
INGRESS = "http://broker-ingress.knative-eventing.svc.cluster.local/muster-system/muster"
LIMIT = 3

POD_IP, PORT = "192.0.2.7", 8080
"""An address of documentation's (RFC 5737)."""


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture(name="account", scope="module")
def _account(bare_137: RealCluster) -> Client:
    """The dead-letter function's own account, with its role."""
    objects = load(built("cluster"))
    role = [obj for obj in objects if obj["metadata"]["name"] in {"dead-letter", "muster-dead-letter"}]
    rights = {"ServiceAccount", "Role", "RoleBinding"}
    manifests.apply(bare_137.api, [_namespace(HOME), *(obj for obj in role if obj["kind"] in rights)])
    return client_of(str(bare_137.service_account_kubeconfig(HOME, "dead-letter")))


@pytest.fixture(name="broker", scope="module")
def _broker(bare_137: RealCluster) -> Iterator[None]:
    """Knative's own type, a broker that says it is ready, and its ingress without a pod."""
    folder = modules.module_folder(modules.ADAPTER) / "config/core/resources"
    (definition,) = (
        obj
        for obj in yaml_files.load_all((folder / "broker.yaml").read_text())
        if obj and obj["kind"] == "CustomResourceDefinition"
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "broker-ingress", "namespace": "knative-eventing"},
        "spec": {"ports": [{"port": 80}]},
    }
    (broker,) = (manifest for manifest in load(EVENTING / "base") if manifest["kind"] == "Broker")
    manifests.apply(bare_137.api, [_namespace(HOME), _namespace("knative-eventing"), service, definition])
    _wait_until_served(client_of(str(bare_137.kubeconfig)))
    manifests.apply(bare_137.api, [broker])
    stored = bare_137.api.must("GET", manifests.path(broker))
    status = stored | {"status": {"address": {"url": INGRESS}}}
    bare_137.api.must("PUT", f"{manifests.path(broker)}/status", status)
    yield
    bare_137.api.must("DELETE", manifests.path(definition))


def _wait_until_served(client: Client) -> None:
    """A type is served a moment after its definition was stored."""
    end = time.monotonic() + 20
    while True:
        try:
            client.list(BROKERS)
        except ApiGone:
            assert time.monotonic() < end, "the API server does not serve Brokers"
            time.sleep(0.1)
        else:
            return


@pytest.fixture(name="kept")
def _kept(account: Client) -> list[str]:
    """The ids of what the function keeps after five undelivered events, oldest first."""
    letters = DeadLetters(account, Settings(dead_letter_namespace=HOME, dead_letter_limit=LIMIT), lambda: NOW)
    for number in range(5):
        assert letters.handle(*binary(EVENT | FAILURE | {"id": f"late-{number}"})).status == 202
    return _names(account)


def _names(client: Client) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in client.list(CONFIGMAPS, HOME, labels=SELECTOR))


def redrive(cluster: RealCluster, *arguments: str) -> Result:
    """Send all of them again, as an administrator."""
    return CliRunner().invoke(main, ["redrive", "--all", "--kubeconfig", str(cluster.kubeconfig), *arguments])


def test_its_role_is_enough_and_the_oldest_make_room(account: Client, kept: list[str]) -> None:
    """Three of five are there; nothing is readable in another namespace."""
    assert len(kept) == LIMIT
    with pytest.raises(Forbidden):
        account.list(CONFIGMAPS, "default")


@pytest.mark.usefixtures("broker")
def test_a_broker_without_a_pod_takes_nothing_so_all_are_kept(bare_137: RealCluster, kept: list[str]) -> None:
    """The proxy of Services is asked, and its 503 is reported; letters that were not accepted are kept."""
    result = redrive(bare_137)
    assert result.exit_code == 1, result.output
    assert f"{INGRESS} answered 503" in result.output
    assert _names(client_of(str(bare_137.kubeconfig))) == kept


def test_accepted_dead_letters_are_deleted(bare_137: RealCluster, kept: list[str]) -> None:
    """A broker that takes them, at its address: as behind `kubectl port-forward`."""
    with _ingress() as ingress:
        result = redrive(bare_137, "--to", ingress.url)
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == len(kept)
    assert _names(client_of(str(bare_137.kubeconfig))) == []


@pytest.mark.usefixtures("broker", "endpoint")
def test_the_api_server_passes_them_on_to_a_pod_of_the_broker(bare_137: RealCluster, kept: list[str]) -> None:
    """Nothing but the kubeconfig is needed: it finds the Service of the broker's address, and a pod of it."""
    with _ingress() as ingress, _pod_network(bare_137, ingress) as asked:
        result = redrive(bare_137)
    assert result.exit_code == 0, result.output
    assert asked == ["/muster-system/muster"] * len(kept)
    assert _names(client_of(str(bare_137.kubeconfig))) == []


@pytest.fixture(name="endpoint")
def _endpoint(bare_137: RealCluster) -> Iterator[None]:
    """A pod of the broker's ingress, and what the endpoints controller makes of it."""
    about = {"namespace": "knative-eventing", "name": "broker-ingress"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": about,
        "spec": {"containers": [{"name": "ingress", "image": "example.com/ingress"}]},
    }
    endpoint = {
        "addresses": [POD_IP],
        "conditions": {"ready": True},
        "targetRef": {"kind": "Pod", **about},
    }
    slices = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**about, "labels": {"kubernetes.io/service-name": "broker-ingress"}},
        "addressType": "IPv4",
        "endpoints": [endpoint],
        "ports": [{"name": "", "port": PORT, "protocol": "TCP"}],
    }
    manifests.apply(bare_137.api, [pod, slices])
    stored = bare_137.api.must("GET", manifests.path(pod))
    stored["status"] |= {"podIP": POD_IP, "podIPs": [{"ip": POD_IP}]}
    bare_137.api.must("PUT", f"{manifests.path(pod)}/status", stored)
    yield
    for obj in (slices, pod):
        bare_137.api.must("DELETE", manifests.path(obj), query={"gracePeriodSeconds": "0"})


@contextmanager
def _ingress() -> Iterator[Ingress]:
    """The local broker, all of whose functions take everything."""
    wiring = Wiring.from_manifests(load()).without_timers()
    services = {trigger.subscriber: lambda *_: Answer(202) for trigger in wiring.triggers}
    ingress = Ingress(Broker(wiring, {**services, "dead-letter": lambda *_: Answer(202)}, workers=0))
    ingress.start()
    try:
        yield ingress
    finally:
        ingress.stop()


@contextmanager
def _pod_network(cluster: RealCluster, ingress: Ingress) -> Iterator[list[str]]:
    """Passes whatever the API server asks of a pod to the local broker; the paths that it asked for.

    The pod is not named: the API server leaves the host as its own client named it.
    """
    asked: list[str] = []
    here, broker = urlsplit(cluster.pod_network), urlsplit(ingress.url)

    class Proxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(urlsplit(self.path).path)
            body = self.rfile.read(int(self.headers["Content-Length"]))
            target = HttpTarget(f"http://{broker.netloc}{asked[-1]}", connections=1)
            answer = target(dict(self.headers.items()), body, 10)
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer((str(here.hostname), int(here.port or 0)), Proxy) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield asked
        finally:
            server.shutdown()
            thread.join()

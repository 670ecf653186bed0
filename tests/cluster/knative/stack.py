"""Starts Knative Eventing, and Serving's webhook, on a running control plane, as processes on loopback."""

from __future__ import annotations

import http.client
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cluster import controllers, manifests, modules
from tests.cluster.api import MERGE_PATCH, KubernetesApi
from tests.cluster.knative import kubelet, release
from tests.cluster.processes import ComponentProcess, NotReady, start, until, wait_ready

RETRIES = 5
"""Retries of every delivery in eventing/, and of an adapter."""

BAD_GATEWAY = 502
"""Status of the proxy for a Service that nothing listens behind."""

_PARTS = ("broker-ingress", "broker-filter", "imc-dispatcher")
_PROBES: tuple[tuple[str, str, dict[str, Any], str], ...] = (
    ("eventing.knative.dev/v1", "Broker", {}, "config"),
    (
        "serving.knative.dev/v1",
        "Service",
        {"template": {"spec": {"containers": [{"image": "example.com/probe"}]}}},
        "traffic",
    ),
    ("messaging.knative.dev/v1", "InMemoryChannel", {}, ""),
)
"""Kinds, each with a spec and the field of it that the defaulting webhook fills in."""


@dataclass(frozen=True)
class Knative:
    """A running Knative.

    Attributes:
        proxy: URL of the proxy that stands for Services.
        folder: folder of the cluster, with the logs of all processes.
    """

    proxy: str
    folder: Path

    def route(self, hosts: dict[str, str]) -> None:
        """Route hosts, ``<host>[:<port>]``, to addresses, ``127.0.0.1:<port>``, instead of earlier ones."""
        KubernetesApi(self.proxy).must("PUT", "/", hosts)

    def serve(self, api: KubernetesApi, namespace: str, name: str, address: str) -> None:
        """Give an existing Knative Service an address, as Serving would when its pods are ready."""
        host = f"{name}.{namespace}.svc.cluster.local"
        self.route({host: address})
        path = f"/apis/serving.knative.dev/v1/namespaces/{namespace}/services/{name}"
        generation = api.must("GET", path)["metadata"]["generation"]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        url = f"http://{host}"
        status = {
            "observedGeneration": generation,
            "url": url,
            "address": {"url": url},
            "conditions": [ready],
        }
        api.must("PATCH", f"{path}/status", {"status": status}, MERGE_PATCH)

    def busy(self) -> str:
        """Return what the broker still has to do, as text; empty if it is idle.

        All deliveries pass the proxy: it knows the requests in flight and, by the rule of Knative's retries,
        which deliveries will be tried again. Only what an event source has not sent yet is unknown.
        """
        before = self._state()
        if before["inFlight"]:
            return f"{before['inFlight']} requests are in flight"
        for refused in before["refused"]:
            if _is_retried(refused) and refused["attempts"] <= RETRIES:
                return f"waits for another attempt: {refused}"
        # Between two requests for one event the broker needs less than this.
        time.sleep(0.05)
        return "" if self._state() == before else "requests were sent just now"

    def forget_refused(self) -> None:
        """Forget deliveries that are not tried again, because the process that would do it was stopped."""
        KubernetesApi(self.proxy).must("DELETE", "/")

    def answers(self) -> bool:
        """Return whether the proxy answers."""
        try:
            return bool(self._state())
        except OSError:
            return False

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = KubernetesApi(self.proxy).must("GET", "/")
        return state

    def request(
        self, url: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes = b""
    ) -> int:
        """Send a request to a Service of the cluster and return the HTTP status."""
        address = urlsplit(self.proxy)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
        try:
            connection.request(method, url, body, {"Host": urlsplit(url).netloc, **(headers or {})})
            status: int = connection.getresponse().status
            return status
        finally:
            connection.close()

    def listens(self, service: str) -> bool:
        """Return whether something listens behind a Service of the namespace knative-eventing."""
        status = self.request(f"http://{service}.knative-eventing.svc.cluster.local/")
        return status != BAD_GATEWAY

    def pods(self) -> dict[str, dict[str, float]]:
        """Return by pod ``pid`` and ``started`` (seconds since the epoch) of its process."""
        pods: dict[str, dict[str, float]] = json.loads((self.folder / kubelet.STATE).read_text())
        return {name.split("/")[1]: process for name, process in pods.items()}


def build() -> None:
    """Build every component of Knative."""
    for component in (modules.EVENTING, modules.SERVING_WEBHOOK, modules.SERVICE_PROXY):
        modules.build(component)


def start_proxy(folder: Path, network: str) -> ComponentProcess:
    """Start the proxy that stands for Services, and wait until it answers."""
    command = [str(modules.build(modules.SERVICE_PROXY)), "--listen", urlsplit(network).netloc]
    process = start("service-proxy", command, folder)
    wait_ready(process, Knative(network, folder).answers)
    return process


def start_knative(
    api: KubernetesApi, folder: Path, network: str, processes: list[ComponentProcess]
) -> Knative:
    """Install Knative and start its processes; return when every webhook and the broker answer."""
    build()
    knative = Knative(network, folder)
    knative.route({"kubernetes.default.svc:443": api.server.removeprefix("https://")})
    definitions = release.types()
    manifests.apply(api, definitions)
    controllers.wait_served(api, definitions)
    controllers.add_node(api, release.NODE, cpu=0, gpus=0, labels={release.NODE_LABEL: "here"})
    manifests.apply(api, release.objects())
    command = [sys.executable, "-m", "tests.cluster.knative.kubelet", str(folder), network]
    pods = start("knative-kubelet", command, folder, {"PYTHONPATH": str(modules.REPOSITORY)})
    processes.append(pods)
    for what, ready in (
        ("webhooks", lambda: all(_is_defaulted(api, *probe) for probe in _PROBES)),
        ("broker", lambda: all(knative.listens(part) for part in _PARTS)),
    ):
        if not until(ready, 90):
            raise NotReady(f"Knative's {what} did not become ready\n{pods.tail()}")
    return knative


def _is_retried(refused: dict[str, Any]) -> bool:
    """Return whether a delivery is retried by its sender: by the dispatcher, or by an adapter.

    The filter, which calls functions, leaves that to the dispatcher.
    """
    host, path = str(refused["host"]), str(refused["path"])
    return path.startswith("/triggers/") or host.startswith(("broker-ingress.", "dead-letter."))


def _is_defaulted(api: KubernetesApi, version: str, kind: str, spec: dict[str, Any], field: str) -> bool:
    metadata = {"name": "probe", "namespace": "default"}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    answer = api.request("POST", manifests.collection(body), body, query={"dryRun": "All"})
    return bool(answer.ok and (not field or field in answer.body["spec"]))

"""Real Knative Eventing between the API server and Muster's functions.

Broker, triggers and sources are those that `kubectl apply -k` created. Each function's Service gets the
address of its process, as it would from Serving.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from muster.simulator.broker import Answer, CloudEvent, HttpTarget, NoAnswerError, Target
from muster.simulator.overlays import of_kind
from tests.cluster import audit, event_source, kubectl, manifests
from tests.cluster.cluster import RealCluster
from tests.cluster.processes import until

Object = dict[str, Any]
_ADAPTERS = "apiserversource-"
_PATIENCE = 60.0
_PING_DELAY = 1.0
"""A ping is sent up to 0.5 s after it was due (pkg/adapter/mtping/runner.go, Knative Eventing v0.47.0)."""


class KnativeEventing:
    """Knative's broker and sources."""

    def __init__(
        self, cluster: RealCluster, objects: Sequence[Object], namespace: str, targets: Mapping[str, Target]
    ) -> None:
        assert cluster.knative, "the cluster has no Knative"
        self._cluster = cluster
        self._knative = cluster.knative
        self._api = cluster.api
        self._namespace = namespace
        self._eventing = [
            manifest
            for kind in ("PingSource", "ApiServerSource", "Trigger", "Broker")
            for manifest in of_kind(list(objects), kind)
        ]
        (self._broker,) = (manifest["metadata"]["name"] for manifest in self._of_kind("Broker"))
        self._doubles = {
            subscriber.partition("/")[0]: TargetServer(target, f"/{subscriber.partition('/')[2]}")
            for subscriber, target in targets.items()
        }
        self._watched: dict[str, float] = {}
        self._audited = 0
        self.redrive_options: list[str] = []

    def start(self) -> None:
        """Wait until broker, triggers and sources are Ready and the adapters watch."""
        for manifest in self._eventing:
            if not until(lambda manifest=manifest: self._ready(manifest), _PATIENCE):  # type: ignore[misc]
                status = self._api.must("GET", manifests.path(manifest)).get("status")
                raise AssertionError(f"{manifests.path(manifest)} did not become Ready: {status}")
        self.settle()

    def stop(self) -> None:
        """Delete sources, triggers and broker, and wait until the adapters have ended."""
        for manifest in self._eventing:
            self._api.request("DELETE", manifests.path(manifest))
        assert until(lambda: not self._adapters(), _PATIENCE), "the adapters did not end"
        for double in self._doubles.values():
            double.stop()

    def serve(self, name: str, url: str) -> None:
        """Route the Service to this URL."""
        if name in self._doubles:
            self._doubles[name].others = url
            url = self._doubles[name].url
        self._knative.serve(self._api, self._namespace, name, url.removeprefix("http://"))

    def start_adapters(self) -> None:
        """Create the sources again, and wait until they are Ready and their adapters watch."""
        self._apply(self._of_kind("ApiServerSource"))
        for source in self._of_kind("ApiServerSource"):
            assert until(lambda source=source: self._ready(source), _PATIENCE)  # type: ignore[misc]
        self.settle()

    def stop_adapters(self) -> None:
        """Delete the sources, and wait until their adapters have ended."""
        for source in self._of_kind("ApiServerSource"):
            self._api.must("DELETE", manifests.path(source))
        assert until(lambda: not self._adapters(), _PATIENCE), "the adapters did not end"

    def start_sweeps(self) -> None:
        """Create the PingSource again."""
        self._apply(self._of_kind("PingSource"))

    def stop_sweeps(self) -> None:
        """Delete the PingSource, and wait until the ping that may be due has been delivered."""
        for source in self._of_kind("PingSource"):
            self._api.must("DELETE", manifests.path(source))
        time.sleep(_PING_DELAY)
        assert self.idle(_PATIENCE), "the broker still delivers"

    def publish(self, event: CloudEvent) -> None:
        """Send an event to the broker's ingress."""
        url = f"http://broker-ingress.knative-eventing.svc.cluster.local/{self._namespace}/{self._broker}"
        status = self._knative.request(url, "POST", event.headers(), event.data)
        assert status == 202, f"the broker answered {status}"

    def idle(self, seconds: float) -> bool:
        """Wait until the broker has delivered everything; see `Knative.busy`."""
        return until(lambda: not self._knative.busy(), seconds)

    def settle(self) -> None:
        """Wait until every source has an adapter for the namespaces that exist now, which watches them all.

        Each new namespace replaces the adapters; events of that moment are lost.
        """
        unsettled: list[str] = []

        def is_settled() -> bool:
            unsettled[:] = [
                reason for source in self._of_kind("ApiServerSource") if (reason := self._unsettled(source))
            ]
            return not unsettled

        assert until(is_settled, _PATIENCE), f"sources do not watch: {unsettled}"

    def _unsettled(self, source: Object) -> str:
        """Return why a source may miss events; empty if it does not."""
        name = source["metadata"]["name"]
        live = self._api.must("GET", manifests.path(source))
        if live.get("status", {}).get("observedGeneration") != live["metadata"]["generation"]:
            return f"{name} has changed"
        if set(live.get("status", {}).get("namespaces") or []) != self._selected_by(live):
            return f"{name} has other namespaces"
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments"
        owned = [
            deployment
            for deployment in self._api.must("GET", path)["items"]
            if deployment["metadata"]["ownerReferences"][0]["uid"] == live["metadata"]["uid"]
        ]
        if not owned or not _is_rolled_out(owned[0]):
            return f"{name} is being rolled out"
        started = self._start_of_adapter(owned[0]["metadata"]["name"])
        if not started:
            return f"{name} has no adapter, or several"
        watches = self._watches()
        missing = {plural for plural in event_source.plurals(source) if watches.get(plural, 0.0) < started}
        return f"{name} does not watch {sorted(missing)}" if missing else ""

    def _selected_by(self, source: Object) -> set[str]:
        """Return the namespaces that a source should watch."""
        selector = source["spec"].get("namespaceSelector")
        if selector is None:
            return {self._namespace}
        labels = ",".join(f"{key}={value}" for key, value in selector.get("matchLabels", {}).items())
        found = self._api.must("GET", "/api/v1/namespaces", query={"labelSelector": labels})
        return {item["metadata"]["name"] for item in found["items"]}

    def _watches(self) -> dict[str, float]:
        """Return when a watch of each resource began last, in seconds since the epoch."""
        log = self._cluster.audit_log
        events = audit.events_since(log, self._audited)
        self._audited = max(self._audited, audit.size(log) - 65536)
        for event in events:
            if event["verb"] == "watch" and "muster-source" in event["user"]["username"]:
                began = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
                plural = event["objectRef"]["resource"]
                self._watched[plural] = max(began, self._watched.get(plural, 0.0))
        return self._watched

    def _start_of_adapter(self, deployment: str) -> float:
        """Return when the process of a Deployment's only pod was started; 0 if it was not, or has others."""
        prefix = deployment[:_LONGEST_PREFIX]
        pods = self._api.must("GET", f"/api/v1/namespaces/{self._namespace}/pods")["items"]
        names = {pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"].startswith(prefix)}
        # Those that run, which may for a moment be others than those that exist.
        processes = {
            name: process for name, process in self._knative.pods().items() if name.startswith(prefix)
        }
        if len(names) != 1 or names != processes.keys():
            return 0.0
        return max(process["started"] for process in processes.values())

    def _adapters(self) -> list[str]:
        return [name for name in self._knative.pods() if name.startswith(_ADAPTERS)]

    def _of_kind(self, kind: str) -> list[Object]:
        return of_kind(self._eventing, kind)

    def _apply(self, objects: list[Object]) -> None:
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        kubectl.run("apply", "-f", "-", kubeconfig=self._cluster.kubeconfig, given=given)

    def _ready(self, manifest: Object) -> bool:
        status = self._api.must("GET", manifests.path(manifest)).get("status") or {}
        conditions = {condition["type"]: condition["status"] for condition in status.get("conditions") or []}
        return conditions.get("Ready") == "True"


_LONGEST_PREFIX = 58
"""Characters of a Deployment's name that the names of its pods keep; the rest of 63 is random."""


class TargetServer:
    """A function of this process at a URL on loopback, which the broker calls in place of a Service.

    Args:
        target: the function.
        path: the path that it is called for, `/` for a Service of its own.

    Attributes:
        url: its URL.
        others: the URL of the Service, to which requests with another path are passed on.
    """

    def __init__(self, target: Target, path: str) -> None:
        server = self

        class TargetHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Answer as the target does, or as the Service does."""
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = target if self.path == path else HttpTarget(f"{server.others}{self.path}")
                try:
                    answer = asked(dict(self.headers.items()), body, None)
                except NoAnswerError as error:
                    answer = Answer(502, body=str(error).encode())
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name.lower() not in _OF_A_SERVER:
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_args: object) -> None:
                """Log nothing."""

        self.others = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), TargetHandler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


_OF_A_SERVER = {"connection", "content-length", "date", "server", "transfer-encoding"}
"""Headers that each server writes itself."""


def _is_rolled_out(deployment: Object) -> bool:
    status = deployment.get("status", {})
    counts = [status.get(field, 0) for field in ("replicas", "updatedReplicas", "readyReplicas")]
    return counts == [1, 1, 1] and status.get("observedGeneration") == deployment["metadata"]["generation"]

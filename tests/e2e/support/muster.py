"""An installation of Muster on a real cluster: manifests, functions as processes, broker and adapters.

Instead of Knative's broker `muster.simulator.broker` reads the same YAML; instead of Knative Serving every
function is a process on loopback with a token of its own service account.
"""

from __future__ import annotations

import contextlib
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muster import kustomize
from muster.events.dead_letters import of_request
from muster.events.parse import UnreadableEvent
from muster.files import EVENTING, FUNCTIONS
from muster.simulator.broker import Answer, Broker, CloudEvent, HttpTarget, Ingress, PingTimer, Report, Wiring
from tests.cluster import manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.cluster.processes import ComponentProcess, start, wait_ready

NAMESPACE = "muster-system"
OVERLAYS = EVENTING / "overlays"

SWEEP = "dev.muster.sweep"
DEAD_LETTER = "dead-letter"


class Muster:
    """An installation of Muster.

    Attributes:
        functions: the process of each function, by the name of its Service.
        manifests: the objects of the overlay.
        namespace: Muster's own namespace in the overlay.
        reports: the broker's deliveries so far, in the order of their end.
        dead_letters: a line for each event that no function accepted, with the last answer.
    """

    def __init__(self, cluster: RealCluster, overlay: Path) -> None:
        self._cluster = cluster
        self._overlay = overlay
        self.functions: dict[str, ComponentProcess] = {}
        self._services: dict[str, _Service] = {}
        self.reports: list[Report] = []
        self.dead_letters: list[str] = []
        self.manifests = kustomize.load(overlay)
        self._containers = {
            service["metadata"]["name"]: service["spec"]["template"]["spec"]["containers"][0]
            for service in kustomize.of_kind(self.manifests, "Service")
        }
        (broker,) = kustomize.of_kind(self.manifests, "Broker")
        self.namespace: str = broker["metadata"]["namespace"]
        self._adapters: dict[str, ComponentProcess] = {}
        self._lock = threading.Lock()
        self._stops = contextlib.ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Apply the manifests except Knative's; start functions, broker and adapters in their place."""
        self.install()
        self._stops.callback(self._stop_functions)
        for name in self._containers:
            self.start_function(name)
        wiring = Wiring.from_manifests(self.manifests)
        self.broker = Broker(wiring, {**self._services, DEAD_LETTER: self._bury}, observe=self._observe)
        self._ingress = Ingress(self.broker)
        for part in (self.broker, self._ingress):
            part.start()
            self._stops.callback(part.stop)
        self._start_sweeps()
        self._stops.callback(self._stop_sweeps)
        self._stops.callback(self.stop_adapters)
        self.start_adapters()

    def stop(self) -> None:
        """Stop all processes, last first; the objects stay in the cluster."""
        self._stops.close()
        self._stopped = True

    def install(self) -> None:
        """Apply namespace, service accounts, roles and admission policies."""
        knative = ("eventing.knative.dev/", "serving.knative.dev/", "sources.knative.dev/")
        plain = [manifest for manifest in self.manifests if not manifest["apiVersion"].startswith(knative)]
        manifests.apply(self._cluster.api, plain)

    def remove_policies(self) -> None:
        """Delete the admission policies, so that Jobs are no longer marked and pods no longer stamped."""
        for manifest in self.manifests:
            if manifest["kind"].startswith("MutatingAdmissionPolicy"):
                self._cluster.api.must("DELETE", manifests.path(manifest))

    def start_function(self, name: str, **settings: str) -> None:
        """Start a function and wait until it listens; each start has another port.

        Args:
            name: name of its Service.
            settings: environment variables that override those of its Service.
        """
        kubeconfig = self._cluster.service_account_kubeconfig(self.namespace, name)
        step = str(FUNCTIONS / name.replace("-", "_") / "function" / "step.py")
        code = "muster.runtime.dead_letter" if name == DEAD_LETTER else step
        command = [sys.executable, "-m", "muster.runtime.serve", code, "--port", "0"]
        environment = {
            "KUBECONFIG": str(kubeconfig),
            "MUSTER_API_SERVER": "",
            # In a pod both are the pod's own namespace.
            "MUSTER_DEAD_LETTER_NAMESPACE": self.namespace,
            "MUSTER_POLICY_NAMESPACE": self.namespace,
            **{variable["name"]: variable["value"] for variable in self._containers[name].get("env", [])},
            **settings,
        }
        log = self._cluster.folder / f"{name}.log"
        before = log.stat().st_size if log.exists() else 0
        process = start(name, command, self._cluster.folder, environment)
        self._cluster.processes.append(process)
        self.functions[name] = process
        wait_ready(process, lambda: _url(log, before) != "")
        self._services.setdefault(name, _Service()).target = HttpTarget(_url(log, before))

    def stop_function(self, name: str) -> None:
        """Stop a function by SIGTERM, like a node that is drained."""
        self._cluster.stop_process(self.functions.pop(name))

    @contextlib.contextmanager
    def without_function(self, name: str) -> Iterator[None]:
        """Stop a function for the length of a block; ignore dead letters of that time."""
        self.stop_function(name)
        try:
            yield
        finally:
            self.start_function(name)
        assert self.idle(), "the broker still has events"
        self.dead_letters.clear()

    @property
    def broker_url(self) -> str:
        """URL at which the broker accepts events."""
        return self._ingress.url

    def readiness(self, name: str) -> tuple[int, str]:
        """Return HTTP status and body of a function's readiness probe."""
        answer = KubernetesApi(self._services[name].target.url).request("GET", "/health/readiness")
        return answer.status, str(answer.body)

    def log(self, name: str) -> str:
        """Return the log of a function."""
        return self.functions[name].log.read_text()

    def _stop_functions(self) -> None:
        for name in list(self.functions):
            self.stop_function(name)

    def start_adapters(self) -> None:
        """Start the receive adapter of every source that has none yet and whose kinds are all served.

        An adapter exits if one of its kinds is not served; in a pod the kubelet would restart it.
        """
        for source in kustomize.of_kind(self.manifests, "ApiServerSource"):
            name, kinds = source["metadata"]["name"], source["spec"]["resources"]
            if name in self._adapters or not all(self._served(kind) for kind in kinds):
                continue
            account = source["spec"]["serviceAccountName"]
            kubeconfig = self._cluster.service_account_kubeconfig(self.namespace, account)
            self._adapters[name] = self._cluster.add_adapter(source, kubeconfig, self._ingress.url)

    def _served(self, kind: Mapping[str, Any]) -> bool:
        listed = {"apiVersion": kind["apiVersion"], "kind": kind["kind"], "metadata": {}}
        return self._cluster.api.request("GET", manifests.collection(listed), query={"limit": "1"}).ok

    def stop_adapters(self) -> None:
        """Stop every receive adapter, so that Muster gets no events of changes."""
        for process in self._adapters.values():
            self._cluster.stop_process(process)
        self._adapters.clear()

    def sweep(self) -> None:
        """Send a sweep, which makes every function look at all objects it is responsible for.

        Waits until the broker is idle first: a function that is already sweeping, perhaps with lists older
        than the story's last change, ignores a second sweep.
        """
        self.idle()
        event = {
            "specversion": "1.0",
            "id": f"sweep-{len(self.reports)}",
            "source": "/tests",
            "type": SWEEP,
        }
        self.broker.publish(CloudEvent(event, b""))

    @contextlib.contextmanager
    def without_sweeps(self) -> Iterator[None]:
        """Stop the periodic sweeps for the length of a block; `sweep` still works."""
        self._stop_sweeps()
        try:
            yield
        finally:
            self._start_sweeps()

    def _stop_sweeps(self) -> None:
        self._pings.stop()

    def _start_sweeps(self) -> None:
        self._pings = PingTimer(Wiring.from_manifests(self.manifests).pings, self.broker.publish)
        self._pings.start()

    def idle(self, seconds: float = 60.0) -> bool:
        """Wait until the broker has delivered everything; return whether it has, or has been stopped."""
        return self._stopped or self.broker.drain(seconds)

    def _observe(self, report: Report) -> None:
        with self._lock:
            self.reports.append(report)

    def _bury(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """Add a line to `dead_letters`, and pass the event on to the function that stores dead letters."""
        try:
            letter = of_request(headers, body)
            line = f"{letter.about}: {letter.function} answered {letter.code} {letter.answer}"
        except UnreadableEvent as error:
            line = str(error)
        with self._lock:
            self.dead_letters.append(line)
        return self._services[DEAD_LETTER](headers, body, timeout)


@contextlib.contextmanager
def installed(cluster: RealCluster, overlay: str) -> Iterator[Muster]:
    """Run Muster on a cluster, from an overlay of eventing/, for the length of a block."""
    muster = Muster(cluster, OVERLAYS / overlay)
    try:
        muster.start()
        yield muster
    finally:
        muster.stop()


class _Service:
    """The broker's target for one function; the address changes when the function restarts."""

    target: HttpTarget

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        return self.target(headers, body, timeout)


def _url(log: Path, offset: int) -> str:
    """Return the address that a function prints when it listens; empty before that.

    Args:
        log: the log of all runs of the function.
        offset: offset of the current run in the log.
    """
    for line in log.read_text()[offset:].splitlines():
        # Other lines are JSON.
        if listening := re.search(r"^[^{].* (http://\S+)$", line):
            return listening[1]
    return ""

"""Muster on the real cluster: manifests applied, functions as processes of their own, broker, adapters.

Not real here is Knative's broker (ours reads the same YAML) and Knative Serving (no pods, no scaling): every
function is a process that serves on loopback with a token of its own service account.
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
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.processes import Process, start, wait_ready

NAMESPACE = "muster-system"
OVERLAYS = EVENTING / "overlays"

SWEEP = "dev.muster.sweep"
DEAD_LETTER = "dead-letter"


class Muster:
    """An installation of Muster.

    Attributes:
        functions: the process of each function, by the name of its Service.
        manifests: what the overlay builds.
        namespace: where the overlay puts Muster itself.
        reports: every delivery so far, in the order in which they ended.
        dead_letters: events that no function took, each in words with the last answer to it.
    """

    def __init__(self, cluster: Cluster, overlay: Path) -> None:
        self._cluster = cluster
        self._overlay = overlay
        self.functions: dict[str, Process] = {}
        self._services: dict[str, _Service] = {}
        self.reports: list[Report] = []
        self.dead_letters: list[str] = []
        self.manifests = kustomize.load(overlay)
        self._containers = {
            one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]
            for one in kustomize.of_kind(self.manifests, "Service")
        }
        (broker,) = kustomize.of_kind(self.manifests, "Broker")
        self.namespace: str = broker["metadata"]["namespace"]
        self._adapters: dict[str, Process] = {}
        self._lock = threading.Lock()
        self._stops = contextlib.ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Applies what a cluster without Knative understands, and starts the rest."""
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
        """Stops what was started, last first; the objects in the cluster go with the cluster."""
        self._stops.close()
        self._stopped = True

    def install(self) -> None:
        """Applies namespace, service accounts, roles and admission policies."""
        knative = ("eventing.knative.dev/", "serving.knative.dev/", "sources.knative.dev/")
        plain = [one for one in self.manifests if not one["apiVersion"].startswith(knative)]
        manifests.apply(self._cluster.api, plain)

    def remove_policies(self) -> None:
        """Deletes the admission policies: from now on nothing is marked or stamped."""
        for one in self.manifests:
            if one["kind"].startswith("MutatingAdmissionPolicy"):
                self._cluster.api.must("DELETE", manifests.path(one))

    def start_function(self, name: str, **settings: str) -> None:
        """Starts a function and waits until it listens, each time on another port.

        Args:
            name: of its Service.
            settings: environment variables beside those of its Service and those it needs here.
        """
        kubeconfig = self._cluster.service_account_kubeconfig(self.namespace, name)
        step = str(FUNCTIONS / name.replace("-", "_") / "function" / "step.py")
        code = "muster.runtime.dead_letter" if name == DEAD_LETTER else step
        command = [sys.executable, "-m", "muster.runtime.serve", code, "--port", "0"]
        environment = {
            "KUBECONFIG": str(kubeconfig),
            "MUSTER_API_SERVER": "",
            # In a pod it is the pod's own.
            "MUSTER_DEAD_LETTER_NAMESPACE": self.namespace,
            **{one["name"]: one["value"] for one in self._containers[name].get("env", [])},
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
        """Stops a function as a node being drained would."""
        self._cluster.stop_process(self.functions.pop(name))

    @contextlib.contextmanager
    def without_function(self, name: str) -> Iterator[None]:
        """Stops a function for a while; what it was sent for longer than retries last is no loss."""
        self.stop_function(name)
        try:
            yield
        finally:
            self.start_function(name)
        assert self.idle(), "the broker still has events"
        self.dead_letters.clear()

    @property
    def broker_url(self) -> str:
        """Where the broker takes events."""
        return self._ingress.url

    def readiness(self, name: str) -> tuple[int, str]:
        """Asks a function whether it is ready; returns status and words."""
        answer = Api(self._services[name].target.url).request("GET", "/health/readiness")
        return answer.status, str(answer.body)

    def log(self, name: str) -> str:
        """Returns everything that a function logged."""
        return self.functions[name].log.read_text()

    def _stop_functions(self) -> None:
        for name in list(self.functions):
            self.stop_function(name)

    def start_adapters(self) -> None:
        """Starts the receive adapter of every source that has none yet and whose kinds are served.

        An adapter ends when one of its kinds is not served; a kubelet would start it again and again.
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
        """Stops every receive adapter: from now on nothing is heard of any change."""
        for process in self._adapters.values():
            self._cluster.stop_process(process)
        self._adapters.clear()

    def sweep(self) -> None:
        """Sends the event that makes every function look at all it is responsible for.

        Not before all else is delivered: a function does one sweep at a time, and one that comes while
        another is under way, with lists older than what a story waits for, is answered with nothing done.
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
        """For as long as nothing but events may help; those that `sweep` sends come all the same."""
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
        """Waits until the broker has delivered everything; returns whether it has. One that stopped has."""
        return self._stopped or self.broker.drain(seconds)

    def _observe(self, report: Report) -> None:
        with self._lock:
            self.reports.append(report)

    def _bury(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """What the function that keeps dead letters answers; stories are told of each."""
        try:
            letter = of_request(headers, body)
            said = f"{letter.about}: {letter.function} answered {letter.code} {letter.answer}"
        except UnreadableEvent as error:
            said = str(error)
        with self._lock:
            self.dead_letters.append(said)
        return self._services[DEAD_LETTER](headers, body, timeout)


@contextlib.contextmanager
def installed(cluster: Cluster, overlay: str) -> Iterator[Muster]:
    """Starts Muster on a cluster, as an overlay of eventing/ says, and stops it again."""
    muster = Muster(cluster, OVERLAYS / overlay)
    try:
        muster.start()
        yield muster
    finally:
        muster.stop()


class _Service:
    """What a Knative Service is to the broker: a name; its address changes when the function starts again."""

    target: HttpTarget

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        return self.target(headers, body, timeout)


def _url(log: Path, offset: int) -> str:
    """Returns the address that a function prints when it listens, empty before that.

    Args:
        log: of every run of the function.
        offset: where in the log the present run begins.
    """
    for line in log.read_text()[offset:].splitlines():
        # What it logs are lines of JSON.
        if listening := re.search(r"^[^{].* (http://\S+)$", line):
            return listening[1]
    return ""

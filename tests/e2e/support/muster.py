"""An installation of Muster on a real cluster: manifests, and functions as processes.

Instead of Knative Serving every function is a process on loopback with a token of its own service account.
Events come through Knative Eventing if the cluster has it, else through the simulated broker.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from muster.events.dead_letters import of_request
from muster.events.parse import UnreadableEvent
from muster.simulator.broker import Answer, CloudEvent, HttpTarget
from muster.simulator.broker.delivery import destination
from muster.simulator.overlays import built, load, of_kind
from tests.cluster import kubectl, manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.cluster.knative.serving import code_of
from tests.cluster.processes import ComponentProcess, start, wait_ready
from tests.e2e.support.knative_eventing import KnativeEventing
from tests.e2e.support.local_eventing import LocalEventing

NAMESPACE = "muster-system"

SWEEP = "dev.muster.sweep"


class Muster:
    """An installation of Muster.

    Attributes:
        functions: the process of each Service, by its name: of one function, or of several.
        manifests: the objects of the overlay.
        namespace: Muster's own namespace in the overlay.
        dead_letters: a line for each event that no function accepted, with the last answer.
    """

    def __init__(self, cluster: RealCluster, overlay: Path) -> None:
        self._cluster = cluster
        self._overlay = overlay
        self.functions: dict[str, ComponentProcess] = {}
        self._urls: dict[str, str] = {}
        self._sweeps = itertools.count(1)
        self.dead_letters: list[str] = []
        self.manifests = load(overlay)
        self._services = {
            service["metadata"]["name"]: service for service in of_kind(self.manifests, "Service")
        }
        (broker,) = of_kind(self.manifests, "Broker")
        self.namespace: str = broker["metadata"]["namespace"]
        self._sink = destination(broker["spec"]["delivery"]["deadLetterSink"])
        arguments = cluster, self.manifests, self.namespace, {self._sink: self._bury}
        self._eventing = KnativeEventing(*arguments) if cluster.knative else LocalEventing(*arguments)
        self._lock = threading.Lock()
        self._stops = contextlib.ExitStack()
        self._stopped = False

    def start(self) -> None:
        """Apply the manifests, and start functions, broker and adapters."""
        self.install()
        self._stops.callback(self._stop_functions)
        for name in self._services:
            self.start_function(name)
        self._stops.callback(self._eventing.stop)
        self._eventing.start()

    def stop(self) -> None:
        """Stop all processes, last first; the objects stay in the cluster."""
        self._stops.close()
        self._stopped = True

    def install(self) -> None:
        """Apply everything; without Knative, what is not of Knative's kinds."""
        if self._cluster.knative:
            kubectl.run("apply", "-f", str(self._overlay), kubeconfig=self._cluster.kubeconfig)
            return
        knative = ("eventing.knative.dev/", "serving.knative.dev/", "sources.knative.dev/")
        plain = [manifest for manifest in self.manifests if not manifest["apiVersion"].startswith(knative)]
        manifests.apply(self._cluster.api, plain)

    def remove_policies(self) -> None:
        """Delete the admission policies, so that Jobs are no longer labelled and pods no longer stamped."""
        for manifest in self.manifests:
            judges_pods = manifest["metadata"]["name"] == "muster-check-gangs"
            if manifest["kind"].startswith("MutatingAdmissionPolicy") or judges_pods:
                self._cluster.api.must("DELETE", manifests.path(manifest))

    def start_function(self, name: str) -> None:
        """Start the functions of a Service and wait until they listen; each start has another port."""
        service = self._services[name]
        pod = service["spec"]["template"]["spec"]
        kubeconfig = self._cluster.service_account_kubeconfig(self.namespace, pod["serviceAccountName"])
        command = [sys.executable, "-m", "muster.runtime.serve", *code_of(service), "--port", "0"]
        environment = {
            "KUBECONFIG": str(kubeconfig),
            "MUSTER_API_SERVER": "",
            # In a pod both are the pod's own namespace.
            "MUSTER_DEAD_LETTER_NAMESPACE": self.namespace,
            "MUSTER_POLICY_NAMESPACE": self.namespace,
            **{variable["name"]: variable["value"] for variable in pod["containers"][0].get("env", [])},
        }
        log = self._cluster.folder / f"{name}.log"
        before = log.stat().st_size if log.exists() else 0
        process = start(name, command, self._cluster.folder, environment)
        self._cluster.processes.append(process)
        self.functions[name] = process
        wait_ready(process, lambda: _url(log, before) != "")
        self._urls[name] = _url(log, before)
        self._eventing.serve(name, self._urls[name])

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
    def redrive_options(self) -> list[str]:
        """Options with which `muster redrive` reaches the broker."""
        return self._eventing.redrive_options

    def readiness(self, name: str) -> tuple[int, str]:
        """Return HTTP status and body of a function's readiness probe."""
        answer = KubernetesApi(self._urls[name]).request("GET", "/health/readiness")
        return answer.status, str(answer.body)

    def metrics(self, name: str) -> str:
        """Return the metrics of a function in Prometheus' text format."""
        return str(KubernetesApi(self._urls[name]).must("GET", "/metrics"))

    def log(self, name: str) -> str:
        """Return the log of a function."""
        return self.functions[name].log.read_text()

    def _stop_functions(self) -> None:
        for name in list(self.functions):
            self.stop_function(name)

    def start_adapters(self) -> None:
        """Start the receive adapter of every source that has none yet and whose kinds are all served."""
        self._eventing.start_adapters()

    def stop_adapters(self) -> None:
        """Stop every receive adapter, so that Muster gets no events of changes."""
        self._eventing.stop_adapters()

    def settle(self) -> None:
        """Wait until the sources watch everything that they should, also in namespaces made just now."""
        if not self._stopped:
            self._eventing.settle()

    def publish(self, event: CloudEvent) -> None:
        """Send an event to the broker."""
        self._eventing.publish(event)

    def sweep(self) -> None:
        """Send a sweep, which makes every function look at all objects it is responsible for.

        Waits until the broker is idle first: a function that is already sweeping, perhaps with lists older
        than the story's last change, ignores a second sweep.
        """
        self.idle()
        event = {"specversion": "1.0", "id": f"sweep-{next(self._sweeps)}", "source": "/tests", "type": SWEEP}
        self.publish(CloudEvent(event, b""))

    @contextlib.contextmanager
    def without_sweeps(self) -> Iterator[None]:
        """Stop the periodic sweeps for the length of a block; `sweep` still works."""
        self._eventing.stop_sweeps()
        try:
            yield
        finally:
            self._eventing.start_sweeps()

    def idle(self, seconds: float = 60.0) -> bool:
        """Wait until the broker has delivered everything; return whether it has, or has been stopped."""
        return self._stopped or self._eventing.idle(seconds)

    def _bury(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """Add a line to `dead_letters`, and pass the event on to the function that stores dead letters."""
        try:
            letter = of_request(headers, body)
            line = f"{letter.about}: {letter.function} answered {letter.code} {letter.answer}"
        except UnreadableEvent as error:
            line = str(error)
        with self._lock:
            self.dead_letters.append(line)
        name, slash, path = self._sink.partition("/")
        return HttpTarget(f"{self._urls[name]}{slash}{path}")(headers, body, timeout)


@contextlib.contextmanager
def installed(cluster: RealCluster, overlay: str) -> Iterator[Muster]:
    """Run Muster on a cluster, from an overlay of eventing/, for the length of a block."""
    muster = Muster(cluster, built(overlay))
    try:
        muster.start()
        yield muster
    finally:
        muster.stop()


def _url(log: Path, offset: int) -> str:
    """Return the address that a function prints when it listens; empty before that."""
    for line in log.read_text()[offset:].splitlines():
        # Other lines are JSON.
        if listening := re.search(r"^[^{].* (http://\S+)$", line):
            return listening[1]
    return ""

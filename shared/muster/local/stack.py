"""API server, controllers, source, broker and functions on one machine, wired by eventing/."""

from __future__ import annotations

import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import Kubeconfig
from muster.data import EVENTING
from muster.replay.activity import Activity, ActivityHandler
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.serve import Functions, server_of
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import Answer, Broker, CloudEvent, Ingress, PingTimer, Target, Wiring
from muster.simulator.controllers import Controllers, node, shipped_runtimes
from muster.simulator.overlays import CLUSTER, Manifest, load, load_beside_muster, of_kind, step_files
from muster.simulator.source import Source, start_all

_NODES = tuple(
    node(name, cpu="8", memory="32Gi", gpu=4, labels={"topology.kubernetes.io/rack": rack})
    for name, rack in {"node-1": "rack-1", "node-2": "rack-1", "node-3": "rack-2"}.items()
)


@contextmanager
def embedded_server(
    *, controllers: bool = False, policies: Iterable[Manifest] | None = None, release: str = "1.37"
) -> Iterator[ApiServer]:
    """Run an API server with the kinds of JobSet and Trainer; None takes the policies of eventing/admission.

    With controllers there are three nodes and the runtimes that Trainer ships, the simulated Trainer, JobSet
    controller, Job controller, scheduler and kubelets.
    """
    with ApiServer(release=release) as server:
        server.load(resource_definitions())
        server.load(load(EVENTING / "admission") if policies is None else list(policies))
        if not controllers:
            yield server
            return
        server.load([*shipped_runtimes(), *_NODES])
        running = Controllers(server.url)
        try:
            running.start()
            yield server
        finally:
            running.stop()


class WsgiServer:
    """A waitress server in a thread, which listens on a port of this machine until `stop`; 0 is any."""

    def __init__(self, app: Any, name: str, threads: int = 8, port: int = 0) -> None:
        listener = socket.create_server(("127.0.0.1", port))
        self._server = server_of(app, threads, sockets=[listener])
        self._stopping = threading.Event()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def stop(self) -> None:
        """Close the listening socket."""
        self._stopping.set()
        self._server.close()

    def _serve(self) -> None:
        try:
            self._server.run()
        except OSError:
            # `stop` closes the socket that waitress selects on, since waitress has no other way to stop.
            if not self._stopping.is_set():
                raise


class Stack:
    """The local stack: `with Stack() as stack`; the listener gets activities from many threads.

    The overlay is a kustomization folder, with steps of one's own in it; without a Broker it is run beside
    Muster's own. The kubeconfig is that of a real cluster; None stands for the embedded one.

    Attributes:
        server: the embedded API server; None with a real cluster.
        function_urls: the URL of each function by its subscriber: the name of a Service, `create-workload`,
            or with the path of one of several functions that share it, `muster/create-workload`.
    """

    client: Client

    def __init__(
        self,
        overlay: Path = CLUSTER,
        listener: Callable[[Activity], None] = lambda _activity: None,
        kubeconfig: Kubeconfig | None = None,
    ) -> None:
        self._overlay = overlay
        self._listener = listener
        self._kubeconfig = kubeconfig
        self.url = ""
        self.server: ApiServer | None = None
        self.dead_letters: list[CloudEvent] = []
        self.function_urls: dict[str, str] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stops:
            self._start(stops)
            self._stops = stops.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stops.close()

    @property
    def broker_url(self) -> str:
        """URL of the broker, to which events can be POSTed."""
        return self._ingress.url

    def settle(self, seconds: float) -> bool:
        """Wait until every event received so far was answered; return whether they were in time."""
        return self._broker.drain(seconds)

    def _start(self, stops: ExitStack) -> None:
        objects = load_beside_muster(self._overlay)
        settings = self._connect(objects, stops)
        wiring = Wiring.from_manifests(objects)
        self._run_functions(wiring, settings, self._kubeconfigs(objects, stops), stops)
        subscribers: dict[str, Target | str] = dict(self.function_urls)
        sinks = {trigger.delivery.dead_letter for trigger in wiring.triggers}
        subscribers |= {name: self._store_dead_letter for name in sinks if name}
        self._broker = broker = Broker(wiring, subscribers)
        self._ingress = Ingress(broker)
        for part in (broker, self._ingress, PingTimer(wiring.pings, broker.publish)):
            part.start()
            stops.callback(part.stop)
        sources = Source.all_of(objects, self.client, self._publish, api_server=self.url)
        for source in sources:
            stops.callback(source.stop)
        start_all(sources)

    def _run_functions(
        self, wiring: Wiring, settings: Settings, accounts: Mapping[str, Path], stops: ExitStack
    ) -> None:
        """Run functions behind waitress, those of each Service with the kubeconfig of its account."""
        services: defaultdict[str, list[str]] = defaultdict(list)
        for subscriber in sorted({trigger.subscriber for trigger in wiring.triggers}):
            services[subscriber.partition("/")[0]].append(subscriber)
        own = step_files(self._overlay)
        stops.enter_context(ActivityHandler(self._listener))
        for service, functions in services.items():
            files = [steps.step_file(name.rpartition("/")[2], own) for name in functions]
            account = settings
            if service in accounts:
                account = replace(settings, api_server="", kubeconfig=str(accounts[service]))
            served = Functions.connected([steps.load_step(file) for file in files], account)
            server = WsgiServer(served.app, service, settings.threads)
            stops.callback(server.stop)
            self.function_urls |= {name: server.url + name.removeprefix(service) for name in functions}

    def _connect(self, objects: list[Manifest], stops: ExitStack) -> Settings:
        """Connect to the cluster, or start the embedded one; return the settings of the functions."""
        if self._kubeconfig is not None:
            self.client = self._kubeconfig.client("muster-run")
            self.url = self.client.url
            return Settings(kubeconfig=self._kubeconfig.paths)
        policies = [manifest for manifest in objects if "AdmissionPolicy" in manifest["kind"]]
        self.server = stops.enter_context(embedded_server(controllers=True, policies=policies))
        self.url = self.server.url
        self.client = Client.for_server(self.url, user_agent="muster-run")
        return Settings(api_server=self.url)

    def _kubeconfigs(self, objects: list[Manifest], stops: ExitStack) -> dict[str, Path]:
        """Write a kubeconfig of each Service's account, since admission policies judge by account."""
        if self.server is None:
            return {}
        folder = Path(stops.enter_context(TemporaryDirectory(prefix="muster-")))
        files = {}
        for service in of_kind(objects, "Service"):
            name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
            account = service["spec"]["template"]["spec"]["serviceAccountName"]
            files[name] = folder / f"{name}.kubeconfig"
            files[name].write_text(self.server.kubeconfig(f"system:serviceaccount:{namespace}:{account}"))
        return files

    def _store_dead_letter(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG002 - a Target
        self.dead_letters.append(CloudEvent.from_http(headers, body))
        return Answer(202)

    def _publish(self, headers: Mapping[str, str], body: bytes) -> int:
        """Take an event of a source and answer at once, as brokers with the async-handler annotation do."""
        self._broker.publish(CloudEvent.from_http(headers, body))
        return 202

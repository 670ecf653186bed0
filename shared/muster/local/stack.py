"""Run API server, controllers, source, broker and functions on one machine, wired by eventing/."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import Kubeconfig
from muster.local.embedded import embedded_server
from muster.local.functions import running_functions
from muster.replay.activity import Activity
from muster.runtime.config import Settings
from muster.simulator.apiserver import ApiServer
from muster.simulator.broker import (
    Answer,
    Broker,
    CloudEvent,
    HttpTarget,
    Ingress,
    PingTimer,
    Report,
    Target,
    Wiring,
)
from muster.simulator.controllers import KubeletOptions
from muster.simulator.overlays import CLUSTER, Manifest, load_beside_muster, of_kind, step_files
from muster.simulator.source import Source, start_all

WATCH_TIMEOUT_SECONDS = 10.0
"""How long to wait for the watches; a source whose API is not served goes on trying meanwhile."""

_STARTING_PAUSES = 3
"""Pauses until a bound pod is ready: long enough to see what is reported of it meanwhile."""


@dataclass(frozen=True)
class StackOptions:
    """The options of a local stack.

    Attributes:
        kubeconfig: the context of a real cluster; None for the embedded one.
        overlay: the kustomization folder with functions, triggers and sources, and with steps of one's own;
            without a Broker it is run beside Muster's own overlay.
        pause_seconds: how long the broker waits before each delivery, so that a person can follow.
    """

    kubeconfig: Kubeconfig | None = None
    overlay: Path = CLUSTER
    pause_seconds: float = 0.0


class Stack:
    """The local stack: `with Stack(options) as stack`.

    Args:
        options: its options.
        listener: called for each activity of the functions, from their threads.
        reporter: called for each delivery of the broker.

    Attributes:
        server: the embedded API server; None with a real cluster.
        client: a client of the API server.
        url: of the API server.
        dead_letters: the events that no retry could deliver.
        function_urls: the URL of each function by its subscriber, see `muster.local.functions`.

    Raises:
        BadKubeconfigError: a certificate cannot be read, or the exec plugin failed.
        BadSettingError: so it did for a function.
        ClusterError: the real cluster does not answer.
        LookupError: a trigger names a Service that has no step.
    """

    client: Client

    def __init__(
        self,
        options: StackOptions,
        listener: Callable[[Activity], None] = lambda _activity: None,
        reporter: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self._options = options
        self._listener = listener
        self._reporter = reporter
        self._stopping = threading.Event()
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
        self._stopping.set()
        self._stops.close()

    @property
    def broker_url(self) -> str:
        """URL of the broker, to which events can be POSTed."""
        return self._ingress.url

    def settle(self, seconds: float) -> bool:
        """Wait until every event received so far was answered; return whether they were in time."""
        return self._broker.drain(seconds)

    def _start(self, stops: ExitStack) -> None:
        objects = load_beside_muster(self._options.overlay)
        settings = self._connect(objects, stops)
        wiring = Wiring.from_manifests(objects)
        names = sorted({trigger.subscriber for trigger in wiring.triggers})
        functions = running_functions(
            names,
            settings,
            self._listener,
            self._kubeconfigs(objects, stops),
            step_files(self._options.overlay),
        )
        self.function_urls = stops.enter_context(functions)
        subscribers: dict[str, Target | str] = {
            name: self._paced(url) for name, url in self.function_urls.items()
        }
        sinks = {trigger.delivery.dead_letter for trigger in wiring.triggers}
        subscribers |= {name: self._store_dead_letter for name in sinks if name}
        self._broker = broker = Broker(wiring, subscribers, observe=self._reporter)
        self._ingress = Ingress(broker)
        for part in (broker, self._ingress, PingTimer(wiring.pings, broker.publish)):
            part.start()
            stops.callback(part.stop)
        sources = Source.all_of(objects, self.client, _publish_to(broker), api_server=self.url)
        for source in sources:
            stops.callback(source.stop)
        start_all(sources, WATCH_TIMEOUT_SECONDS)

    def _connect(self, objects: list[Manifest], stops: ExitStack) -> Settings:
        """Connect to the cluster, or start the embedded one; return the settings of the functions."""
        if self._options.kubeconfig is not None:
            self.client = self._options.kubeconfig.client("muster-run")
            self.url = self.client.url
            self.client.served_versions("apps")  # raises ClusterError if the API server does not answer
            return Settings(kubeconfig=self._options.kubeconfig.paths)
        starting = KubeletOptions.run_delay + _STARTING_PAUSES * self._options.pause_seconds
        cluster = embedded_server(
            controllers=True,
            policies=[manifest for manifest in objects if "AdmissionPolicy" in manifest["kind"]],
            kubelet=KubeletOptions(run_delay=starting),
        )
        self.server = stops.enter_context(cluster)
        self.url = self.server.url
        self.client = Client.for_server(self.url, user_agent="muster-run")
        # Jitter spreads the sweeps of all functions over time, which the embedded API server does not need.
        return Settings(api_server=self.url, sweep_jitter_seconds=0)

    def _paced(self, url: str) -> Target | str:
        """Return the URL of a function as a subscriber, which gets each event after the pause."""
        seconds = self._options.pause_seconds
        if not seconds:
            return url
        target = HttpTarget(url)

        def deliver(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
            self._stopping.wait(seconds)
            return target(headers, body, timeout)

        return deliver

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


def _publish_to(broker: Broker) -> Callable[[Mapping[str, str], bytes], int]:
    """Return a sink for sources that answers at once, as a broker with the async-handler annotation does."""

    def publish(headers: Mapping[str, str], body: bytes) -> int:
        broker.publish(CloudEvent.from_http(headers, body))
        return 202

    return publish

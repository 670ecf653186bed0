"""Everything on one machine: API server, controllers, source, broker and functions, wired by eventing/."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from muster import manifests
from muster.cluster.client import Client
from muster.local.functions import AsProcesses, InThreads
from muster.manifests import Manifest
from muster.replay.activity import Activity
from muster.runtime.config import Settings
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import (
    Answer,
    Broker,
    CloudEvent,
    Ingress,
    PingTimer,
    RefusedError,
    Report,
    Target,
    Wiring,
)
from muster.simulator.controllers import Controllers, KubeletOptions, node, shipped_runtimes
from muster.simulator.source import Source, start_all

WATCHES_BEGIN_WITHIN = 10.0
"""Seconds; a source whose API is not served goes on trying, and the rest runs without it."""

ADMISSION = {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
"""What of eventing/ the embedded API server acts on itself."""

NODES = tuple(node(f"node-{number}", cpu="8", memory="32Gi", gpu=4) for number in (1, 2, 3))
"""What the embedded cluster has room for."""

LETTERS_KEPT = 100
"""As many as the function dead_letter keeps unless told otherwise; the oldest make room."""


@dataclass(frozen=True)
class Options:
    """How the stack runs.

    Attributes:
        kubeconfig: of a real cluster; None for the embedded one.
        processes: each function in a process of its own.
        port: of the embedded API server; 0 takes any free one.
        overlay: the kustomization folder that says which steps there are and what they hear.
    """

    kubeconfig: Path | None = None
    processes: bool = False
    port: int = 0
    overlay: Path = manifests.CLUSTER


class Stack:
    """The local stack, running from `start` to `stop`.

    Args:
        options: how it runs.
        listener: hears of everything the functions do, from their threads.
        reporter: hears of every delivery of the broker.

    Attributes:
        server: the embedded API server; None with a real cluster.
        client: a client of the API server.
        dead_letters: events that no retry could deliver, the last LETTERS_KEPT of them.
    """

    def __init__(
        self,
        options: Options,
        listener: Callable[[Activity], None] = lambda _activity: None,
        reporter: Callable[[Report], None] = lambda _report: None,
    ) -> None:
        self._options = options
        self._listener = listener
        self._reporter = reporter
        self._stops = ExitStack()
        self._letters = threading.Lock()
        self._url = ""
        self.server: ApiServer | None = None
        self.dead_letters: list[CloudEvent] = []

    def start(self) -> Self:
        """Start everything, in the order in which each needs the other.

        Raises:
            OSError: the port is taken.
            ClusterError: the real cluster does not answer.
            FunctionDownError: a function did not come up.
        """
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop what was started, last first."""
        self._stops.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where the API server is."""
        return self._url

    @property
    def broker_url(self) -> str:
        """Where anybody may POST an event."""
        return self._ingress.url

    def settle(self, seconds: float) -> bool:
        """Wait until every event that came so far was answered; whether that was so in time."""
        return self._broker.drain(seconds)

    def _start(self) -> None:
        objects = manifests.load(self._options.overlay)
        settings = self._connected(objects)
        wiring = Wiring.from_manifests(objects)
        services = sorted({trigger.subscriber for trigger in wiring.triggers})
        functions = (AsProcesses if self._options.processes else InThreads)(
            services, settings, self._listener
        )
        self._stops.callback(functions.stop)
        subscribers: dict[str, Target | str] = {**functions.urls, **self._dead_letter_sinks(wiring)}
        self._broker = broker = Broker(wiring, subscribers, observe=self._reporter)
        self._ingress = Ingress(broker)
        for part in (broker, self._ingress, PingTimer(wiring.pings, broker.publish)):
            part.start()
            self._stops.callback(part.stop)
        sources = Source.all_of(objects, self.client, _into(broker), api_server=self._url)
        for source in sources:
            self._stops.callback(source.stop)
        start_all(sources, WATCHES_BEGIN_WITHIN)

    def _connected(self, objects: list[Manifest]) -> Settings:
        """A client of the cluster; the embedded one is started and furnished."""
        if self._options.kubeconfig is not None:
            path = str(self._options.kubeconfig)
            self.client = Client.from_kubeconfig(path, user_agent="muster-run")
            self._url = self.client.url
            self.client.served_versions("apps")  # raises where nobody answers
            return Settings(kubeconfig=path)
        self.server = ApiServer(port=self._options.port).start()
        self._stops.callback(self.server.stop)
        self.server.load(resource_definitions())
        admission = [one for one in objects if one["kind"] in ADMISSION]
        self.server.load([*admission, *shipped_runtimes(), *NODES])
        self._url = self.server.url
        self.client = Client.for_server(self._url, user_agent="muster-run")
        controllers = Controllers(self._url, kubelet=KubeletOptions())
        self._stops.callback(controllers.stop)
        controllers.start()
        # A server of their own is not spared by functions that take turns.
        return Settings(api_server=self._url, sweep_jitter_seconds=0)

    def _dead_letter_sinks(self, wiring: Wiring) -> dict[str, Target]:
        names = {trigger.delivery.dead_letter for trigger in wiring.triggers}
        return {name: self._bury for name in names if name}

    def _bury(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG002
        with self._letters:
            self.dead_letters.append(CloudEvent.from_http(headers, body))
            del self.dead_letters[:-LETTERS_KEPT]
        return Answer(202)


def _into(broker: Broker) -> Callable[[Mapping[str, str], bytes], int]:
    """The broker as a source's sink: it takes events in at once, as with the async-handler annotation."""

    def publish(headers: Mapping[str, str], body: bytes) -> int:
        try:
            broker.publish(CloudEvent.from_http(headers, body))
        except RefusedError as refused:
            return refused.status
        return 202

    return publish

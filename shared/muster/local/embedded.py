"""The embedded API server with admission policies, and with simulated controllers if wanted."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from muster.cluster.http.client import Client
from muster.data import EVENTING
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import Controllers, KubeletOptions, node, shipped_runtimes
from muster.simulator.direct import Direct
from muster.simulator.overlays import Manifest, load

RACK = "topology.kubernetes.io/rack"
NODES = tuple(
    node(name, cpu="8", memory="32Gi", gpu=4, labels={RACK: rack})
    for name, rack in {"node-1": "rack-1", "node-2": "rack-1", "node-3": "rack-2"}.items()
)
"""The nodes of the embedded cluster."""

_KUBELET = KubeletOptions()


class ServerWithControllers:
    """An API server in this process with the kinds of JobSet and Trainer; it runs from `start` to `stop`.

    Args:
        controllers: run the simulated Trainer, JobSet controller, Job controller, scheduler and kubelets, on
            the nodes of NODES and with the runtimes that Trainer ships.
        policies: admission policies and their bindings; None takes those of eventing/admission.
        release: the Kubernetes release, `1.37` or `1.36`.
        port: 0 takes any free port.
        kubelet: the delays of the simulated kubelets.

    Attributes:
        server: the API server.
        client: a client of it.
    """

    def __init__(
        self,
        *,
        controllers: bool = False,
        policies: Iterable[Manifest] | None = None,
        release: str = "1.37",
        port: int = 0,
        kubelet: KubeletOptions = _KUBELET,
    ) -> None:
        self.server = ApiServer(port=port, release=release)
        self._controllers = controllers
        self._kubelet = kubelet
        self._policies = load(EVENTING / "admission") if policies is None else list(policies)
        self._stops = ExitStack()
        self.client: Client

    @property
    def url(self) -> str:
        """URL of the API server."""
        return self.server.url

    def start(self) -> Self:
        """Start the server, then the controllers.

        Raises:
            OSError: the port is taken.
        """
        self.server.start()
        self._stops.callback(self.server.stop)
        self.server.load(resource_definitions())
        self.server.load(self._policies)
        self.client = Direct.to(self.server, user_agent="muster-embedded")
        if self._controllers:
            self.server.load([*shipped_runtimes(), *NODES])
            controllers = Controllers(self.url, kubelet=self._kubelet)
            self._stops.callback(controllers.stop)
            controllers.start()
        return self

    def stop(self) -> None:
        """Stop controllers and server; the server's objects remain readable."""
        self._stops.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

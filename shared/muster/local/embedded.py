"""The embedded API server with admission policies, and with simulated controllers if wanted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from muster.data import EVENTING
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import Controllers, KubeletOptions, node, shipped_runtimes
from muster.simulator.overlays import Manifest, load

_NODES = tuple(
    node(name, cpu="8", memory="32Gi", gpu=4, labels={"topology.kubernetes.io/rack": rack})
    for name, rack in {"node-1": "rack-1", "node-2": "rack-1", "node-3": "rack-2"}.items()
)
_KUBELET = KubeletOptions()


@contextmanager
def embedded_server(
    *,
    controllers: bool = False,
    policies: Iterable[Manifest] | None = None,
    release: str = "1.37",
    kubelet: KubeletOptions = _KUBELET,
) -> Iterator[ApiServer]:
    """Run an API server with the kinds of JobSet and Trainer.

    Args:
        controllers: run the simulated Trainer, JobSet controller, Job controller, scheduler and kubelets, on
            three nodes and with the runtimes that Trainer ships.
        policies: admission policies and their bindings; None takes those of eventing/admission.
        release: the Kubernetes release, `1.37` or `1.36`.
        kubelet: the delays of the simulated kubelets.
    """
    with ApiServer(release=release) as server:
        server.load(resource_definitions())
        server.load(load(EVENTING / "admission") if policies is None else list(policies))
        if not controllers:
            yield server
            return
        server.load([*shipped_runtimes(), *_NODES])
        running = Controllers(server.url, kubelet=kubelet)
        try:
            running.start()
            yield server
        finally:
            running.stop()

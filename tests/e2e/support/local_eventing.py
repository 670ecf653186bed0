"""The simulated broker between Knative's real adapters and Muster's functions.

`muster.simulator.broker` reads the same YAML as Knative's controllers. One adapter process is started for
each ApiServerSource.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from muster.simulator.broker import Broker, CloudEvent, HttpTarget, Ingress, PingTimer, Target, Wiring
from muster.simulator.overlays import of_kind
from tests.cluster import manifests
from tests.cluster.cluster import RealCluster
from tests.cluster.processes import ComponentProcess


class LocalEventing:
    """The broker in this process, and the adapters."""

    def __init__(
        self,
        cluster: RealCluster,
        objects: Sequence[Mapping[str, Any]],
        namespace: str,
        targets: Mapping[str, Target],
    ) -> None:
        self._cluster = cluster
        self._sources = of_kind(list(map(dict, objects)), "ApiServerSource")
        self._namespace = namespace
        self._wiring = Wiring.from_manifests(list(map(dict, objects)))
        self._targets: dict[str, Target] = dict(targets)
        self._functions: dict[str, _Function] = {
            subscriber: _Function()
            for trigger in self._wiring.triggers
            for subscriber in (trigger.subscriber, trigger.delivery.dead_letter)
        }
        self._adapters: dict[str, ComponentProcess] = {}
        self._stops = contextlib.ExitStack()
        self.redrive_options: list[str] = []

    def start(self) -> None:
        """Start broker, sweeps and adapters."""
        self._broker = Broker(self._wiring, {**self._functions, **self._targets})
        self._ingress = Ingress(self._broker)
        for part in (self._broker, self._ingress):
            part.start()
            self._stops.callback(part.stop)
        self.redrive_options += ["--to", self._ingress.url]
        self.start_sweeps()
        self._stops.callback(self.stop_sweeps)
        self._stops.callback(self.stop_adapters)
        self.start_adapters()

    def stop(self) -> None:
        """Stop adapters, sweeps and broker."""
        self._stops.close()

    def serve(self, name: str, url: str) -> None:
        """Deliver the events of a Service's functions to this URL, and paths on it, from now on."""
        for subscriber, function in self._functions.items():
            service, slash, path = subscriber.partition("/")
            if service == name:
                function.target = HttpTarget(f"{url}{slash}{path}")

    def start_adapters(self) -> None:
        """Start the receive adapter of every source that has none yet and whose kinds are all served.

        An adapter exits if one of its kinds is not served; in a pod the kubelet would restart it.
        """
        for source in self._sources:
            name, kinds = source["metadata"]["name"], source["spec"]["resources"]
            if name in self._adapters or not all(self._served(kind) for kind in kinds):
                continue
            account = source["spec"]["serviceAccountName"]
            kubeconfig = self._cluster.service_account_kubeconfig(self._namespace, account)
            self._adapters[name] = self._cluster.add_adapter(source, kubeconfig, self._ingress.url)

    def _served(self, kind: Mapping[str, Any]) -> bool:
        listed = {"apiVersion": kind["apiVersion"], "kind": kind["kind"], "metadata": {}}
        return self._cluster.api.request("GET", manifests.collection(listed), query={"limit": "1"}).ok

    def stop_adapters(self) -> None:
        """Stop every receive adapter."""
        for process in self._adapters.values():
            self._cluster.stop_process(process)
        self._adapters.clear()

    def start_sweeps(self) -> None:
        """Start the timer of the PingSource."""
        self._pings = PingTimer(self._wiring.pings, self._broker.publish)
        self._pings.start()

    def stop_sweeps(self) -> None:
        """Stop the timer."""
        self._pings.stop()

    def publish(self, event: CloudEvent) -> None:
        """Give an event to the broker."""
        self._broker.publish(event)

    def idle(self, seconds: float) -> bool:
        """Wait until the broker has delivered everything."""
        return self._broker.drain(seconds)

    def settle(self) -> None:
        """Return at once: the adapters watch all namespaces, new ones too."""


class _Function:
    """The broker's target for one function; the address changes when the function restarts."""

    target: HttpTarget

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Any:
        return self.target(headers, body, timeout)

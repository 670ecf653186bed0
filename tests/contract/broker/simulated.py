"""The broker of a contract case on our own broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import urllib3

from muster.simulator.broker import Broker, Ingress, Wiring
from muster.simulator.overlays import Manifest, UnsupportedManifestError
from tests.contract.broker.case import BrokerCase
from tests.contract.broker.recipients import LONGEST_SECONDS, Recipients

NAMESPACE = "contract"


class SimulatedBroker:
    """Our broker with the triggers of one case."""

    def __init__(self, case: BrokerCase, broker: Broker, ingress: Ingress) -> None:
        self._case = case
        self._broker = broker
        self.url, self.address = ingress.url, broker.address
        self.client = urllib3.PoolManager()

    def accepts(self, spec: Mapping[str, Any]) -> bool:
        """Return whether a trigger with this `spec` can be read."""
        try:
            Wiring.from_manifests(
                [broker_of(self._case), trigger_of(self._case, "asked", spec)], broker=self._case.broker
            )
        except UnsupportedManifestError:
            return False
        return True

    def settle(self, since: float) -> None:  # noqa: ARG002 - only Knative's broker needs it
        """Wait until the broker is idle."""
        assert self._broker.drain(LONGEST_SECONDS), "the broker is still at work"


@contextmanager
def serving(case: BrokerCase, recipients: Recipients) -> Iterator[SimulatedBroker]:
    """Run our broker with the triggers of a case.

    Raises:
        UnsupportedManifestError: our broker refuses them.
    """
    manifests = [broker_of(case), *(trigger_of(case, name, spec) for name, spec in case.triggers.items())]
    wiring = Wiring.from_manifests(manifests, broker=case.broker)
    names = {trigger.subscriber for trigger in wiring.triggers}
    names |= {trigger.delivery.dead_letter for trigger in wiring.triggers if trigger.delivery.dead_letter}
    broker = Broker(wiring, {name: recipients.url_of(case.key, name) for name in names})
    ingress = Ingress(broker)
    broker.start()
    ingress.start()
    served = SimulatedBroker(case, broker, ingress)
    try:
        yield served
    finally:
        served.client.clear()
        ingress.stop()
        broker.stop()


def broker_of(case: BrokerCase) -> Manifest:
    """Return the Broker of a case."""
    metadata = {"name": case.broker, "namespace": NAMESPACE}
    spec = {} if case.delivery is None else _with_refs({"delivery": case.delivery})
    return {"kind": "Broker", "metadata": metadata, "spec": spec}


def trigger_of(case: BrokerCase, name: str, spec: Mapping[str, Any]) -> Manifest:
    """Return a Trigger of a case's broker."""
    spec = {"broker": case.broker, "subscriber": {"ref": {"name": name}}, **_with_refs(spec)}
    return {"kind": "Trigger", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _with_refs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy whose dead letter sink is a `ref` to a Service."""
    delivery = dict(spec.get("delivery") or {})
    if "deadLetterSink" in delivery:
        delivery["deadLetterSink"] = {"ref": delivery["deadLetterSink"]}
    return {**spec, "delivery": delivery} if "delivery" in spec else dict(spec)

"""Our broker fulfils the contract cases, and answers and delivers as Knative's did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import urllib3

from muster.simulator.broker import Broker, Ingress, Wiring
from muster.simulator.overlays import Manifest
from tests.contract.broker import answers
from tests.contract.broker.case import BrokerCase, Entries, converse
from tests.contract.broker.cases import CASES
from tests.contract.broker.recipients import LONGEST_SECONDS, Recipients

NAMESPACE = "contract"


class SimulatedBroker:
    """Our broker with the triggers of one case."""

    def __init__(self, broker: Broker, ingress: Ingress) -> None:
        self._broker = broker
        self.url, self.address = ingress.url, broker.address
        self.client = urllib3.PoolManager()

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
    served = SimulatedBroker(broker, ingress)
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


AT_ONCE = 12
"""Cases that run at the same time; most of their time is waiting."""


def _run(case: BrokerCase, recipients: Recipients) -> Entries:
    with serving(case, recipients) as broker:
        return converse(case, broker, recipients)


@pytest.fixture(scope="module")
def runs() -> Iterator[dict[str, Future[Entries]]]:
    """All cases, started together."""
    with Recipients() as recipients, ThreadPoolExecutor(AT_ONCE) as pool:
        yield {case.key: pool.submit(_run, case, recipients) for case in CASES}


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.subject}: {case.rule}") for case in CASES])
def test_our_broker_keeps_to(case: BrokerCase, runs: dict[str, Future[Entries]]) -> None:
    """The rule holds and everything equals the recording."""
    recorded = answers.read(case)
    assert recorded is not None, "Knative's broker was not asked yet: `make record`"
    assert answers.difference(recorded, runs[case.key].result()) == ""

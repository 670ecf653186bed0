"""The brokers of all contract cases on Knative's: ingress, in-memory channel, dispatcher and filter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import urllib3

from tests.cluster import manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import ClusterOptions, RealCluster
from tests.cluster.processes import until
from tests.contract.broker.case import BrokerCase, Entries, converse
from tests.contract.broker.recipients import Recipients

NAMESPACE = "contract"
INGRESS = "http://broker-ingress.knative-eventing.svc.cluster.local"
GROUP = "eventing.knative.dev/v1"

OPTIONS = ClusterOptions(controllers=("controller-manager", "scheduler", "kwok"), types=(), knative=True)
"""The cluster that Knative needs."""

AT_ONCE = 16
"""Cases that run at the same time; most of their time is waiting."""

READY_SECONDS = 240.0
SILENCE_SECONDS = 6.0
"""After this time without a delivery a case is over; longer than any wait before a retry in the cases."""


class KnativeBroker:
    """Knative's broker with the triggers of one case."""

    def __init__(self, case: BrokerCase, cluster: RealCluster, recipients: Recipients) -> None:
        assert cluster.knative is not None, "the cluster was started without Knative"
        self._case = case
        self._recipients = recipients
        self.url = self.address = f"{INGRESS}/{NAMESPACE}/{case.broker}"
        self.client: urllib3.PoolManager = urllib3.ProxyManager(cluster.knative.proxy)

    def settle(self, since: float) -> None:
        """Wait until no recipient of the case has heard anything for a while."""
        self._recipients.wait_for_silence(self._case.key, since, SILENCE_SECONDS)


def run(
    cases: Iterable[BrokerCase], cluster: RealCluster, recipients: Recipients
) -> dict[str, Future[Entries]]:
    """Return the recordings of cases by key; all have ended.

    Raises:
        AssertionError: a broker or trigger did not become ready.
    """
    cases = list(cases)
    _install(cases, cluster.api, recipients)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {case.key: pool.submit(_converse, case, cluster, recipients) for case in cases}


def _converse(case: BrokerCase, cluster: RealCluster, recipients: Recipients) -> Entries:
    broker = KnativeBroker(case, cluster, recipients)
    try:
        return converse(case, broker, recipients)
    finally:
        broker.client.clear()


def _install(cases: list[BrokerCase], api: KubernetesApi, recipients: Recipients) -> None:
    """Create the brokers and triggers of all cases and wait until Knative delivers to each."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    brokers = [broker_of(case, recipients) for case in cases]
    triggers = [
        trigger_of(case, name, spec, recipients) for case in cases for name, spec in case.triggers.items()
    ]
    manifests.apply(api, [home, *brokers, *triggers])
    missing: list[str] = []

    def ready() -> bool:
        missing[:] = [name for plural in ("brokers", "triggers") for name in _not_ready(api, plural)]
        return not missing

    assert until(ready, READY_SECONDS), f"not ready after {READY_SECONDS:.0f} s: {missing}"
    time.sleep(10)  # the filter and the dispatcher watch by themselves


def _not_ready(api: KubernetesApi, plural: str) -> list[str]:
    items = api.must("GET", f"/apis/{GROUP}/namespaces/{NAMESPACE}/{plural}")["items"]
    return [item["metadata"]["name"] for item in items if not _is_ready(item)]


def _is_ready(item: Mapping[str, Any]) -> bool:
    conditions = item.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def broker_of(case: BrokerCase, recipients: Recipients) -> dict[str, Any]:
    """Return the Broker of a case, with the annotation of eventing/base/broker.yaml."""
    metadata = {
        "name": case.broker,
        "namespace": NAMESPACE,
        "annotations": {"messaging.knative.dev/async-handler": "true"},
    }
    spec = {} if case.delivery is None else _with_uris({"delivery": case.delivery}, case, recipients)
    return {"apiVersion": GROUP, "kind": "Broker", "metadata": metadata, "spec": spec}


def trigger_of(
    case: BrokerCase, name: str, spec: Mapping[str, Any], recipients: Recipients
) -> dict[str, Any]:
    """Return a Trigger of a case's broker."""
    metadata = {"name": f"{case.key}-{name}".replace("_", "-"), "namespace": NAMESPACE}
    subscriber = {"uri": recipients.url_of(case.key, name)}
    spec = {"broker": case.broker, "subscriber": subscriber, **_with_uris(spec, case, recipients)}
    return {"apiVersion": GROUP, "kind": "Trigger", "metadata": metadata, "spec": spec}


def _with_uris(spec: Mapping[str, Any], case: BrokerCase, recipients: Recipients) -> dict[str, Any]:
    """Return a copy whose dead letter sink is the `uri` of a recipient."""
    delivery = dict(spec.get("delivery") or {})
    if "deadLetterSink" in delivery:
        delivery["deadLetterSink"] = {"uri": recipients.url_of(case.key, delivery["deadLetterSink"]["name"])}
    return {**spec, "delivery": delivery} if "delivery" in spec else dict(spec)

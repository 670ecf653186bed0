"""Knative's adapters as recorders: one for each mode, and their events as they are kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from muster.kustomize import load, of_kind
from muster.simulator.broker import CloudEvent
from tests.cluster.cluster import Cluster
from tests.cluster.sink import Received, Sink
from tests.e2e.support.muster import NAMESPACE, OVERLAYS
from tests.replays.recording.take import Object

OVERLAY = OVERLAYS / "cluster"
RESOURCE, REFERENCE = "Resource", "Reference"

_FIRST = (
    "specversion",
    "id",
    "source",
    "type",
    "datacontenttype",
    "apiversion",
    "kind",
    "name",
    "namespace",
    "subject",
    "time",
)
"""The attributes in the order in which people look for them; others follow as they came."""


@contextlib.contextmanager
def listening(cluster: Cluster) -> Iterator[Sink]:
    """Two adapters that watch all that Muster's sources watch, until the block ends."""
    sources = of_kind(load(OVERLAY), "ApiServerSource")
    account = sources[0]["spec"]["serviceAccountName"]
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, account)
    resources = [resource for source in sources for resource in source["spec"]["resources"]]
    with Sink() as sink, contextlib.ExitStack() as stops:
        for mode in (RESOURCE, REFERENCE):
            metadata = {"name": f"recorder-{mode.lower()}", "namespace": NAMESPACE}
            spec = {"mode": mode, "namespaceSelector": {}, "resources": resources}
            source: Object = {"metadata": metadata, "spec": spec}
            adapter = cluster.add_adapter(source, kubeconfig, f"{sink.url}/{mode}")
            stops.callback(cluster.stop_process, adapter)
        yield sink


def events(sink: Sink, mode: str, namespace: str) -> list[Object]:
    """What one adapter told so far of a namespace and of no namespace, in order of arrival."""
    told = [structured(one) for one in list(sink.received[f"/{mode}"])]
    return [event for event in told if event["namespace"] in ("", namespace)]


def structured(received: Received) -> Object:
    """A CloudEvent of binary mode as one JSON object, the values of its headers as they came.

    `metadata.managedFields` is taken out of the data: it is half of every object, and no step reads it. The
    source's own namespace, which comes as a header without `ce-`, is left out.
    """
    told = CloudEvent.from_http(received.headers, received.body).structured()
    told["data"].get("metadata", {}).pop("managedFields", None)
    return {**{name: told[name] for name in _FIRST if name in told}, **told}

"""Runs Knative's adapters as recorders, one for each mode, and returns their events."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from muster.policy.group_labels import GROUP
from muster.simulator.broker import CloudEvent
from muster.simulator.overlays import load, of_kind
from tests.cluster.cluster import RealCluster
from tests.cluster.sink import ReceivedRequest, Sink
from tests.e2e.support.muster import NAMESPACE
from tests.replays.recording.take import Object

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
"""Attributes that are written first, in this order; others follow as received."""


@contextlib.contextmanager
def listening(cluster: RealCluster) -> Iterator[Sink]:
    """Run two adapters for the length of a block, which watch every resource of Muster's sources.

    Pods are recorded to their end, for steps that react to more than their creation.
    """
    sources = of_kind(load(), "ApiServerSource")
    account = sources[0]["spec"]["serviceAccountName"]
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, account)
    resources = [_whole(resource) for source in sources for resource in source["spec"]["resources"]]
    with Sink() as sink, contextlib.ExitStack() as stops:
        for mode in (RESOURCE, REFERENCE):
            metadata = {"name": f"recorder-{mode.lower()}", "namespace": NAMESPACE}
            spec = {"mode": mode, "namespaceSelector": {}, "resources": resources}
            source: Object = {"metadata": metadata, "spec": spec}
            adapter = cluster.add_adapter(source, kubeconfig, f"{sink.url}/{mode}")
            stops.callback(cluster.stop_process, adapter)
        yield sink


def _whole(resource: Object) -> Object:
    whole = {name: value for name, value in resource.items() if name != "selector"}
    labelled = {"selector": {"matchExpressions": [{"key": GROUP, "operator": "Exists"}]}}
    return whole | labelled if resource["kind"] == "Pod" else whole


def events(sink: Sink, mode: str, namespace: str) -> list[Object]:
    """Return the events of one mode about a namespace or cluster-scoped objects, in order of arrival."""
    sent = [structured(request) for request in list(sink.received[f"/{mode}"])]
    return [event for event in sent if event["namespace"] in ("", namespace)]


def structured(received: ReceivedRequest) -> Object:
    """Return a CloudEvent in binary mode as one JSON object, with the values of its headers unchanged.

    `metadata.managedFields` is taken out of the data: it is half of every object, and no step reads it. The
    source's own namespace, which comes as a header without `ce-`, is left out.
    """
    event = CloudEvent.from_http(received.headers, received.body).structured()
    event["data"].get("metadata", {}).pop("managedFields", None)
    return {**{name: event[name] for name in _FIRST if name in event}, **event}

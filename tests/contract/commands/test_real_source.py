"""The local source beside Knative's real adapter: the same changes, the same events, down to the headers.

Both watch one real API server and send to one recorder. What only the sender knows (id, time) and what HTTP
clients add by themselves is left out of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cluster.kubeconfig import client_of
from muster.simulator.broker import HttpTarget
from muster.simulator.overlays import built, load, of_kind
from muster.simulator.source import Source, SourceSpec
from tests.cluster.api import MERGE_PATCH, KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.cluster.manifests import apply
from tests.cluster.processes import until
from tests.cluster.sink import Sink

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PODS = "/api/v1/namespaces/{namespace}/pods"
JOBS = "/apis/batch/v1/namespaces/{namespace}/jobs"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"
RIGHTS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
OF_EACH_SENDING = {"Ce-Id", "Ce-Time"}
VERBS = {
    "Pod": ["add", "update", "delete", "add", "update", "delete"],
    "Job": ["add", "update", "delete"],
    "ClusterTrainingRuntime": ["add", "update", "delete"],
}
"""The events of the changes below; a pod's add and delete are also entering and leaving the selector.

The last update of a pod is its deletionTimestamp."""

Seen = tuple[dict[str, str], Any]


class _Recorder(Sink):
    """What both sent, by the path that each was given."""

    def of(self, path: str, kind: str) -> list[Seen]:
        """The events about one kind, in order, without what each sending has of its own."""
        return [
            (_attributes(request.headers), json.loads(request.body))
            for request in self.received[path]
            if request.headers["Ce-Kind"] == kind
        ]

    def verbs(self, path: str, kind: str) -> list[str]:
        """What happened to one kind, in order."""
        return [headers["Ce-Type"].rpartition(".")[2] for headers, _ in self.of(path, kind)]


def _attributes(headers: dict[str, str]) -> dict[str, str]:
    ours = {name: value for name, value in headers.items() if name.startswith(("Ce-", "Kn-", "Content-T"))}
    return {name: value for name, value in ours.items() if name not in OF_EACH_SENDING}


@pytest.fixture
def recorder() -> Iterator[_Recorder]:
    """A sink for both."""
    with _Recorder() as made:
        yield made


@pytest.mark.parametrize("mode", ["Resource", "Reference"])
def test_both_sources_send_the_same_events(bare_137: RealCluster, recorder: _Recorder, mode: str) -> None:
    """Changes, entering and leaving a selector, cluster-scoped objects; nothing of what was there before."""
    api, namespace = bare_137.api, f"sources-{mode.lower()}"
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    api.must("POST", PODS.format(namespace=namespace), _pod("old", {"muster.dev/gated": "true"}))
    manifests = [
        {**source, "spec": {**source["spec"], "mode": mode}}
        for source in of_kind(load(built("cluster")), "ApiServerSource")
        if source["metadata"]["name"] in {"jobs-and-pods", "trainjobs"}
    ]
    listener = _listener(bare_137)
    adapters = [bare_137.add_adapter(manifest, listener, f"{recorder.url}/adapter") for manifest in manifests]
    client, local = client_of(str(listener)), HttpTarget(f"{recorder.url}/local")
    sources = [
        Source(
            SourceSpec.from_manifest(manifest),
            client,
            lambda headers, body: local(headers, body, None).status,
            api_server=api.server,
            watch_seconds=5,
        )
        for manifest in manifests
    ]
    for source in sources:
        source.start(within=10)
    _live(api, namespace)
    complete = until(
        lambda: all(recorder.verbs("/adapter", kind) == verbs for kind, verbs in VERBS.items()), 20
    )
    also = until(lambda: all(recorder.verbs("/local", kind) == verbs for kind, verbs in VERBS.items()), 20)
    for source in sources:
        source.stop()
    for adapter in adapters:
        bare_137.stop_process(adapter)
    assert complete, {kind: recorder.verbs("/adapter", kind) for kind in VERBS}
    assert also, {kind: recorder.verbs("/local", kind) for kind in VERBS}
    for kind in VERBS:
        assert recorder.of("/local", kind) == recorder.of("/adapter", kind)
    assert {headers["Ce-Name"] for headers, _ in recorder.of("/local", "Pod")} == {"new"}


def _listener(cluster: RealCluster) -> Path:
    """A kubeconfig of the service account that the sources name, with its rights and no others."""
    plain = [manifest for manifest in load(built("cluster")) if manifest["kind"] in RIGHTS]
    apply(cluster.api, plain)
    return cluster.service_account_kubeconfig("muster-system", "muster-source")


def _live(api: KubernetesApi, namespace: str) -> None:
    """A pod enters the selector, changes, leaves, enters and goes; a Job and a runtime come and go."""
    pods, jobs = PODS.format(namespace=namespace), JOBS.format(namespace=namespace)
    api.must("POST", pods, _pod("new", {}))
    for labels in ({"muster.dev/gated": "true"}, {"other": "x"}, {"muster.dev/gated": None}):
        _merge(api, f"{pods}/new", {"labels": labels})
    _merge(api, f"{pods}/new", {"labels": {"muster.dev/gated": "true"}, "annotations": {"said": "<é&>"}})
    api.must("DELETE", f"{pods}/new", query={"gracePeriodSeconds": "0"})
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/train"}]}
    }
    api.must("POST", jobs, {"metadata": {"name": "sweep"}, "spec": {"parallelism": 2, "template": template}})
    api.must("PATCH", f"{jobs}/sweep", {"spec": {"parallelism": 1}}, MERGE_PATCH)
    api.must("DELETE", f"{jobs}/sweep", query={"propagationPolicy": "Background"})
    api.must("POST", RUNTIMES, _runtime(namespace))
    _merge(api, f"{RUNTIMES}/{namespace}", {"annotations": {"seen": "true"}})
    api.must("DELETE", f"{RUNTIMES}/{namespace}")


def _merge(api: KubernetesApi, path: str, metadata: dict[str, Any]) -> None:
    api.must("PATCH", path, {"metadata": metadata}, MERGE_PATCH)


def _pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "example.com/train"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def _runtime(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"replicatedJobs": []}}},
    }

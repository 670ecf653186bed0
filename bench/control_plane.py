"""A real etcd and kube-apiserver with Muster's roles and admission policies, and nothing that reacts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.objects.resources import Resource
from muster.simulator.overlays import CLUSTER, load
from tests.cluster import controllers, manifests
from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.e2e.support import admission
from tests.e2e.support.muster import NAMESPACE

Object = dict[str, Any]
_KNATIVE = ("eventing.knative.dev/", "serving.knative.dev/", "sources.knative.dev/")


@dataclass
class ControlPlane:
    """A running API server.

    Attributes:
        cluster: its processes and credentials.
        client: a client as administrator, safe to share between threads.
    """

    cluster: RealCluster
    client: Client = field(init=False)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.client = client_of(str(self.cluster.kubeconfig))

    def must(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Object:
        """Send a request as administrator and return the body of its answer, which must be 2xx."""
        status, answer = self.client.raw(method, path, body=body, content_type=content_type)
        if status // 100 != 2:
            raise RuntimeError(f"{method} {path}: {status} {answer}")
        return dict(answer)

    def all(self, resource: Resource, namespace: str) -> list[Object]:
        """Return the objects of a kind in a namespace, each with its apiVersion and kind."""
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [kind | item for item in self.must("GET", resource.path(namespace=namespace))["items"]]

    def new_namespace(self) -> str:
        """Create a namespace in which Jobs are marked, and return its name."""
        name = f"bench-{next(self._numbers):03d}"
        labels = {"muster.dev/gang-jobs": "enabled"}
        self.must("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        if not admission.policies_at_work(self.cluster.api, name):
            raise RuntimeError(f"Jobs in {name} are not marked")
        return name

    def new_file(self, name: str) -> Path:
        """Return the path of a new file in the folder of logs, with this end of its name."""
        return self.cluster.folder / f"{next(self._numbers):03d}-{name}"

    def kubeconfig(self, function: str, server: str = "") -> Path:
        """Write a kubeconfig of a function's service account.

        Args:
            function: such as `create_workload`.
            server: another address of the API server, such as that of a proxy.
        """
        account = function.replace("_", "-")
        return self.cluster.credentials.kubeconfig(
            f"{account}-{'proxy' if server else 'direct'}",
            server or self.cluster.api.server,
            self.token(account),
        )

    def token(self, account: str) -> str:
        """Return a token of a service account of Muster."""
        return controllers.service_account_token(self.cluster.api, NAMESPACE, account)


@contextmanager
def control_plane() -> Iterator[ControlPlane]:
    """Build what is missing, and run a control plane for the length of a block."""
    with running(ClusterOptions(controllers=(), types=("jobset", "trainer"))) as cluster:
        plain = [manifest for manifest in load(CLUSTER) if not manifest["apiVersion"].startswith(_KNATIVE)]
        manifests.apply(cluster.api, plain)
        yield ControlPlane(cluster)

"""Starts LeaderWorkerSet and KubeRay, whose pods become gangs by labels alone."""

from __future__ import annotations

from tests.cluster import modules
from tests.cluster.api import KubernetesApi
from tests.cluster.controllers import service_account, start_with_webhooks, wait_healthy
from tests.cluster.credentials import Credentials
from tests.cluster.processes import ComponentProcess, free_ports, start


def start_lws(api: KubernetesApi, credentials: Credentials) -> ComponentProcess:
    """Start the LeaderWorkerSet controller with its own service account, and install its webhooks."""
    config = modules.module_folder(modules.LWS) / "config"
    return start_with_webhooks(
        api,
        credentials,
        modules.LWS,
        configuration={"apiVersion": "config.lws.x-k8s.io/v1alpha1"},
        role=config / "rbac/role.yaml",
        webhooks=config / "webhook/manifests.yaml",
        label_of_pods="leaderworkerset.sigs.k8s.io/name",
    )


def start_kuberay(api: KubernetesApi, credentials: Credentials) -> ComponentProcess:
    """Start KubeRay's operator with its own service account; its webhooks are off, as by default."""
    (health_port,) = free_ports(1)
    role = modules.module_folder(modules.KUBERAY) / "config/rbac/role.yaml"
    token = service_account(api, "ray-system", "kuberay-operator", role)
    command = [
        str(modules.build(modules.KUBERAY)),
        f"--kubeconfig={credentials.kubeconfig('kuberay', api.server, token)}",
        f"--health-probe-bind-address=127.0.0.1:{health_port}",
        "--metrics-addr=0",
        "--enable-leader-election=false",
    ]
    process = start("kuberay", command, credentials.folder)
    wait_healthy(process, health_port)
    return process

"""Starts LeaderWorkerSet and KubeRay, whose pods become gangs by labels alone."""

from __future__ import annotations

import json

from tests.cluster import modules
from tests.cluster.api import KubernetesApi
from tests.cluster.controllers import install_webhooks, service_account, wait_healthy
from tests.cluster.credentials import Credentials
from tests.cluster.processes import ComponentProcess, free_ports, start


def start_lws(api: KubernetesApi, credentials: Credentials) -> ComponentProcess:
    """Start the LeaderWorkerSet controller with its own service account, and install its webhooks."""
    folder = modules.module_folder(modules.LWS)
    webhook_port, health_port = free_ports(2)
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(credentials.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    token = service_account(api, "lws-system", "lws-controller-manager", folder / "config/rbac/role.yaml")
    kubeconfig = credentials.kubeconfig("lws", api.server, token)
    config = credentials.folder / "lws.json"
    config.write_text(json.dumps(configuration))
    command = [str(modules.build(modules.LWS)), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    process = start("lws", command, credentials.folder)
    wait_healthy(process, health_port)
    # As the release's kustomization patches them: the pod webhooks get only pods of a LeaderWorkerSet.
    name = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
    selectors = {"pods": {"matchExpressions": [name]}}
    webhooks = folder / "config/webhook/manifests.yaml"
    install_webhooks(api, credentials, webhooks, "lws", webhook_port, selectors)
    return process


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

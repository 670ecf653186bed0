"""Starts JobSet, Trainer and KWOK against an API server, with the CRDs and webhooks of their own modules."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cluster import manifests, modules
from tests.cluster.api import Api
from tests.cluster.credentials import Credentials
from tests.cluster.processes import Process, free_ports, start, until, wait_ready


def install_types(api: Api, types: Iterable[str]) -> None:
    """Applies the CRDs of ``jobset`` and ``trainer``, whichever are named; waits until they are served."""
    files: list[Path] = []
    if "jobset" in types:
        files += (modules.module_folder(modules.JOBSET) / "config/components/crd/bases").glob("*.yaml")
    if "trainer" in types:
        files += (modules.module_folder(modules.TRAINER) / "manifests/base/crds").glob("trainer*.yaml")
    definitions = list(manifests.documents(files))
    manifests.apply(api, definitions)
    for definition in definitions:
        spec = definition["spec"]
        version = next(one["name"] for one in spec["versions"] if one["served"])
        _until_served(api, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")


def start_jobset(api: Api, credentials: Credentials, gates: Iterable[str] = ()) -> Process:
    """Starts the JobSet controller as its own service account, and sends the API server to its webhooks.

    The defaulting webhook is load-bearing: without it a JobSet has no successPolicy, and its controller
    crashes.

    Args:
        api: the API as administrator.
        credentials: its certificate, and kubeconfigs.
        gates: feature gates of JobSet's own that are switched on.
    """
    folder = modules.module_folder(modules.JOBSET)
    webhook_port, health_port = free_ports(2)
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(credentials.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "featureGates": dict.fromkeys(gates, True),
    }
    role = folder / "config/components/rbac/role.yaml"
    token = _service_account(api, "jobset-system", "jobset-controller-manager", role)
    kubeconfig = credentials.kubeconfig("jobset", api.server, token)
    config = credentials.folder / "jobset.json"
    config.write_text(json.dumps(configuration))
    command = [str(modules.build(modules.JOBSET)), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    process = start("jobset", command, credentials.folder)
    _wait_healthy(process, health_port)
    webhooks = folder / "config/components/webhook/manifests.yaml"
    # As the module's kustomization patches them: only pods of a JobSet come to the pod webhooks.
    of_jobsets = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
    _install_webhooks(api, credentials, webhooks, "jobset", webhook_port, {"pods": of_jobsets})
    return process


def start_trainer(api: Api, credentials: Credentials) -> Process:
    """Starts the Trainer as its own service account, with its webhooks, and applies the runtimes it ships."""
    folder = modules.module_folder(modules.TRAINER)
    webhook_port, health_port = free_ports(2)
    configuration = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port},
        "leaderElection": {"leaderElect": False},
        "certManagement": {"enable": False},
    }
    role = folder / "manifests/base/rbac/role.yaml"
    token = _service_account(api, "kubeflow-system", "kubeflow-trainer-controller-manager", role)
    kubeconfig = credentials.kubeconfig("trainer", api.server, token)
    config = credentials.folder / "trainer.json"
    config.write_text(json.dumps(configuration))
    # Its configuration cannot say where the certificate is: controller-runtime's default lies under TMPDIR.
    certificates = credentials.folder / "trainer/k8s-webhook-server/serving-certs"
    certificates.mkdir(parents=True)
    for file in (credentials.certificate, credentials.key):
        (certificates / file.name).write_bytes(file.read_bytes())
    command = [str(modules.build(modules.TRAINER)), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    process = start("trainer", command, credentials.folder, {"TMPDIR": str(credentials.folder / "trainer")})
    _wait_healthy(process, health_port)
    _install_webhooks(
        api, credentials, folder / "manifests/base/webhook/manifests.yaml", "trainer", webhook_port
    )
    manifests.apply(api, manifests.documents(sorted((folder / "manifests/base/runtimes").rglob("*.yaml"))))
    return process


def start_kwok(api: Api, credentials: Credentials) -> Process:
    """Starts KWOK as the kubelet of every node."""
    command = [
        str(modules.build(modules.KWOK)),
        f"--kubeconfig={credentials.kubeconfig('kwok', api.server)}",
        f"--config={modules.HERE / 'kwok/stages.yaml'}",
        "--manage-all-nodes",
        "--node-lease-duration-seconds=0",
    ]
    return start("kwok", command, credentials.folder)


def add_node(
    api: Api, name: str, *, cpu: int = 8, gpus: int = 4, labels: dict[str, str] | None = None
) -> None:
    """Creates a ready node with 32Gi of memory and room for 110 pods.

    The API server taints a new node as not ready and leaves it to a controller that watches heartbeats to
    take that away; here nobody does.
    """
    resources = {"cpu": str(cpu), "memory": "32Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }
    api.must("POST", "/api/v1/nodes", node)
    untainted = {"spec": {"taints": None}}
    api.must("PATCH", f"/api/v1/nodes/{name}", untainted, "application/merge-patch+json")


def _until_served(api: Api, path: str) -> None:
    # First 404, then 429 "storage is (re)initializing".
    if not until(lambda: api.request("GET", path).ok, 30):
        raise AssertionError(f"{path} is still not served: {api.request('GET', path).message}")


def _install_webhooks(
    api: Api,
    credentials: Credentials,
    file: Path,
    name: str,
    port: int,
    selectors: dict[str, dict[str, Any]] | None = None,
) -> None:
    for document in manifests.documents([file]):
        document["metadata"]["name"] = name
        for webhook in document["webhooks"]:
            service = webhook.pop("clientConfig")["service"]
            url = f"https://127.0.0.1:{port}{service['path']}"
            webhook["clientConfig"] = {"url": url, "caBundle": credentials.ca_bundle}
            selector = (selectors or {}).get(webhook["rules"][0]["resources"][0])
            if selector:
                webhook["objectSelector"] = selector
        manifests.apply(api, [document])


def _service_account(api: Api, namespace: str, name: str, role_file: Path) -> str:
    """Makes a service account with the cluster role of a file, and returns a token for it."""
    metadata = {"name": name, "namespace": namespace}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    role = next(one for one in manifests.documents([role_file]) if one["kind"] == "ClusterRole")
    role["metadata"]["name"] = name
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    manifests.apply(api, [home, account, role, binding])
    return service_account_token(api, namespace, name)


def service_account_token(api: Api, namespace: str, name: str) -> str:
    """Returns a token of an existing service account that is good for a day."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86400},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    token: str = api.must("POST", path, request)["status"]["token"]
    return token


def _wait_healthy(process: Process, port: int) -> None:
    health = Api(f"http://127.0.0.1:{port}")

    def answers() -> bool:
        try:
            return health.request("GET", "/readyz").ok
        except OSError:
            return False

    wait_ready(process, answers, 60)

"""Starts JobSet, Trainer and KWOK against an API server, with the CRDs and webhooks of their releases."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cluster import manifests, modules
from tests.cluster.api import KubernetesApi
from tests.cluster.credentials import Credentials
from tests.cluster.processes import ComponentProcess, free_ports, start, until, wait_ready

_TYPES = {
    "jobset": (modules.JOBSET, "config/components/crd/bases/*.yaml"),
    "trainer": (modules.TRAINER, "manifests/base/crds/trainer*.yaml"),
    "lws": (modules.LWS, "config/crd/bases/leaderworkerset*.yaml"),
    "kuberay": (modules.KUBERAY, "config/crd/bases/*.yaml"),
}


def install_types(api: KubernetesApi, types: Iterable[str]) -> None:
    """Apply the CRDs of the named controllers, and wait until they are served."""
    files: list[Path] = []
    for name in types:
        component, pattern = _TYPES[name]
        files += modules.module_folder(component).glob(pattern)
    definitions = list(manifests.documents(files))
    manifests.apply(api, definitions)
    wait_served(api, definitions)


def wait_served(api: KubernetesApi, definitions: Iterable[dict[str, Any]]) -> None:
    """Wait until the API server serves the kinds of these CustomResourceDefinitions."""
    for definition in definitions:
        spec = definition["spec"]
        version = next(version["name"] for version in spec["versions"] if version["served"])
        _until_served(api, f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")


def start_jobset(api: KubernetesApi, credentials: Credentials, gates: Iterable[str] = ()) -> ComponentProcess:
    """Start the JobSet controller with its own service account, and install its webhooks.

    The defaulting webhook is required: a JobSet without successPolicy crashes the controller.
    """
    config = modules.module_folder(modules.JOBSET) / "config/components"
    return start_with_webhooks(
        api,
        credentials,
        modules.JOBSET,
        configuration={
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "featureGates": dict.fromkeys(gates, True),
        },
        role=config / "rbac/role.yaml",
        webhooks=config / "webhook/manifests.yaml",
        label_of_pods="jobset.sigs.k8s.io/jobset-name",
    )


def start_with_webhooks(
    api: KubernetesApi,
    credentials: Credentials,
    component: modules.Component,
    *,
    configuration: dict[str, Any],
    role: Path,
    webhooks: Path,
    label_of_pods: str,
) -> ComponentProcess:
    """Start a controller of JobSet's shape: its service account, its configuration file, its webhooks.

    As in the kustomizations of their releases, the webhooks of pods get only pods with a label.
    """
    name = component.name
    webhook_port, health_port = free_ports(2)
    configuration |= {
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": webhook_port, "certDir": str(credentials.folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    token = service_account(api, f"{name}-system", f"{name}-controller-manager", role)
    kubeconfig = credentials.kubeconfig(name, api.server, token)
    config = credentials.folder / f"{name}.json"
    config.write_text(json.dumps(configuration))
    command = [str(modules.build(component)), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    process = start(name, command, credentials.folder)
    wait_healthy(process, health_port)
    labelled = {"matchExpressions": [{"key": label_of_pods, "operator": "Exists"}]}
    _install_webhooks(api, credentials, webhooks, name, webhook_port, {"pods": labelled})
    return process


def start_trainer(api: KubernetesApi, credentials: Credentials) -> ComponentProcess:
    """Start the Trainer with its own service account and webhooks, and apply the runtimes it ships."""
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
    token = service_account(api, "kubeflow-system", "kubeflow-trainer-controller-manager", role)
    kubeconfig = credentials.kubeconfig("trainer", api.server, token)
    config = credentials.folder / "trainer.json"
    config.write_text(json.dumps(configuration))
    # Its configuration has no field for the certificate; controller-runtime's default is under TMPDIR.
    certificates = credentials.folder / "trainer/k8s-webhook-server/serving-certs"
    certificates.mkdir(parents=True)
    for file in (credentials.certificate, credentials.key):
        (certificates / file.name).write_bytes(file.read_bytes())
    command = [str(modules.build(modules.TRAINER)), f"--config={config}", f"--kubeconfig={kubeconfig}"]
    process = start("trainer", command, credentials.folder, {"TMPDIR": str(credentials.folder / "trainer")})
    wait_healthy(process, health_port)
    _install_webhooks(
        api, credentials, folder / "manifests/base/webhook/manifests.yaml", "trainer", webhook_port
    )
    manifests.apply(api, manifests.documents(sorted((folder / "manifests/base/runtimes").rglob("*.yaml"))))
    return process


def start_kwok(api: KubernetesApi, credentials: Credentials) -> ComponentProcess:
    """Start KWOK, which simulates the kubelet of every node."""
    command = [
        str(modules.build(modules.KWOK)),
        f"--kubeconfig={credentials.kubeconfig('kwok', api.server)}",
        f"--config={modules.HERE / 'kwok/stages.yaml'}",
        "--manage-all-nodes",
        "--node-lease-duration-seconds=0",
    ]
    return start("kwok", command, credentials.folder)


def add_node(
    api: KubernetesApi, name: str, *, cpu: int = 8, gpus: int = 4, labels: dict[str, str] | None = None
) -> None:
    """Create a ready node with 32Gi of memory and room for 110 pods.

    The API server adds the taint not-ready to a new node. It is removed here, because the node lifecycle
    controller, which removes it in real clusters, is off.
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


def _until_served(api: KubernetesApi, path: str) -> None:
    # First 404, then 429 "storage is (re)initializing".
    if not until(lambda: api.request("GET", path).ok, 30):
        raise AssertionError(f"{path} is still not served: {api.request('GET', path).message}")


def _install_webhooks(
    api: KubernetesApi,
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


def service_account(api: KubernetesApi, namespace: str, name: str, role_file: Path) -> str:
    """Create a service account bound to the ClusterRole in a file, and return a token for it."""
    metadata = {"name": name, "namespace": namespace}
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    role = next(
        manifest for manifest in manifests.documents([role_file]) if manifest["kind"] == "ClusterRole"
    )
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


def service_account_token(api: KubernetesApi, namespace: str, name: str) -> str:
    """Return a token of an existing service account, valid for a day."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86400},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    token: str = api.must("POST", path, request)["status"]["token"]
    return token


def wait_healthy(process: ComponentProcess, port: int) -> None:
    """Wait until a controller answers at its port of health checks."""
    health = KubernetesApi(f"http://127.0.0.1:{port}")

    def answers() -> bool:
        try:
            return health.request("GET", "/readyz").ok
        except OSError:
            return False

    wait_ready(process, answers, 60)

"""Starts etcd, kube-apiserver, kube-scheduler and kube-controller-manager of one release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import modules
from tests.cluster.api import KubernetesApi
from tests.cluster.credentials import Credentials
from tests.cluster.processes import ComponentProcess, free_ports, start, wait_ready

# Every component needs the gates: with a gate on in the API server alone, groups are never scheduled.
DEFAULT_GATES = {
    "1.37": ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup"),
    "1.36": ("GenericWorkload", "GangScheduling"),
}
DEFAULT_APIS = {
    "1.37": ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"),
    "1.36": ("scheduling.k8s.io/v1alpha2",),
}

AUDIT_LOG = "audit.jsonl"

# Fake nodes send no heartbeats: the node lifecycle controller would evict their pods after 50 s.
ALL_CONTROLLERS = ("*", "-node-lifecycle-controller")

# The controllers that carry out deletions; none of them creates or changes objects.
COLLECTORS = ("garbage-collector-controller", "namespace-controller", "podgroup-protection-controller")


@dataclass(frozen=True)
class Release:
    """A Kubernetes minor version with the gates and API versions that are switched on.

    Attributes:
        minor: ``1.37`` or ``1.36``.
        gates: feature gates of every component; None for those that Muster needs.
        apis: API versions served beside the defaults; None for those that Muster needs.
        skewed: components with other gates, as (component, gates); nothing in Kubernetes prevents that.
        flags: further flags, as (component, flags); the last one of a name takes effect.
    """

    minor: str = "1.37"
    gates: tuple[str, ...] | None = None
    apis: tuple[str, ...] | None = None
    skewed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    flags: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def gate_flag(self, component: str) -> str:
        """Return ``--feature-gates`` of a component."""
        common_gates = DEFAULT_GATES[self.minor] if self.gates is None else self.gates
        gates = dict(self.skewed).get(component, common_gates)
        return "--feature-gates=" + ",".join(f"{gate}=true" for gate in gates)

    def api_flag(self) -> str:
        """Return ``--runtime-config`` for the API server."""
        apis = DEFAULT_APIS[self.minor] if self.apis is None else self.apis
        return "--runtime-config=" + ",".join(f"{api}=true" for api in apis)

    def more_flags(self, component: str) -> tuple[str, ...]:
        """Return the further flags of a component."""
        return dict(self.flags).get(component, ())

    def binary(self, name: str) -> str:
        """Build a component of this release and return its path."""
        return str(modules.build(modules.KUBERNETES[self.minor][name]))


def start_etcd(folder: Path) -> tuple[ComponentProcess, str]:
    """Start an etcd without fsync; return it and its URL."""
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    command = [
        str(modules.build(modules.ETCD)),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
    return start("etcd", command, folder), client


def start_apiserver(
    release: Release,
    credentials: Credentials,
    etcd: str,
    *,
    service_accounts: bool,
    pod_network: str,
    service_network: str,
    port: int = 0,
) -> tuple[ComponentProcess, KubernetesApi]:
    """Start kube-apiserver and wait until it is ready; return it and a client as administrator.

    Args:
        release: version, gates and API versions.
        credentials: certificate, signing key and users.
        etcd: its URL.
        service_accounts: whether admission gives pods a service account. Needs a controller manager, which
            creates the account ``default``; without it every pod would be refused.
        pod_network: URL of the HTTP proxy through which it reaches pods; nothing needs to listen there. All
            other addresses are on loopback and bypass it.
        service_network: URL of the HTTP proxy through which it reaches webhooks that are named by a Service.
        port: 0 chooses a free one.
    """
    port = port or free_ports(1)[0]
    key = credentials.key
    command = [
        release.binary("kube-apiserver"),
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        # Endpoints may not be loopback addresses: whatever fills in the `kubernetes` Service must stay out.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={credentials.certificate}",
        f"--tls-private-key-file={key}",
        f"--token-auth-file={credentials.token_file}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-signing-key-file={key}",
        f"--service-account-key-file={credentials.certificate}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        f"--audit-policy-file={modules.HERE / 'audit-policy.yaml'}",
        f"--audit-log-path={credentials.folder / AUDIT_LOG}",
        # Never rotated: the stories read the log from its first line on.
        "--audit-log-maxsize=0",
        release.gate_flag("kube-apiserver"),
        release.api_flag(),
        *release.more_flags("kube-apiserver"),
    ]
    if not service_accounts:
        command.append("--disable-admission-plugins=ServiceAccount")
    server = f"https://127.0.0.1:{port}"
    api = KubernetesApi.from_kubeconfig(credentials.kubeconfig("admin", server))
    # GOGC=400 doubles the memory to 0.9 GB and saves a sixth of the CPU time.
    environment = {"HTTP_PROXY": pod_network, "HTTPS_PROXY": service_network, "GOGC": "400"}
    process = start("kube-apiserver", command, credentials.folder, environment)
    wait_ready(process, api.ready, 120)
    return process, api


def start_scheduler(release: Release, credentials: Credentials, server: str) -> ComponentProcess:
    """Start kube-scheduler with its default configuration."""
    kubeconfig = credentials.kubeconfig("scheduler", server)
    command = [
        release.binary("kube-scheduler"),
        f"--kubeconfig={kubeconfig}",
        "--secure-port=0",
        "--leader-elect=false",
        release.gate_flag("kube-scheduler"),
        "-v=2",
        *release.more_flags("kube-scheduler"),
    ]
    return start("kube-scheduler", command, credentials.folder)


def start_controller_manager(
    release: Release, credentials: Credentials, server: str, controllers: Iterable[str] = ALL_CONTROLLERS
) -> ComponentProcess:
    """Start kube-controller-manager; every controller uses its own service account."""
    kubeconfig = credentials.kubeconfig("controller-manager", server)
    port = free_ports(1)[0]
    command = [
        release.binary("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={credentials.folder / 'controller-manager'}",
        "--leader-elect=false",
        "--use-service-account-credentials",
        f"--service-account-private-key-file={credentials.key}",
        f"--root-ca-file={credentials.certificate}",
        f"--controllers={','.join(controllers)}",
        release.gate_flag("kube-controller-manager"),
        *release.more_flags("kube-controller-manager"),
    ]
    return start("kube-controller-manager", command, credentials.folder)


def pods_can_be_made(api: KubernetesApi) -> bool:
    """Return whether the controller manager has created the service account ``default``."""
    return api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default").ok

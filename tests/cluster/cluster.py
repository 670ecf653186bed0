"""Starts and stops a real control plane on loopback."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import controllers, credentials, event_source, operators
from tests.cluster.api import KubernetesApi
from tests.cluster.control_plane import (
    AUDIT_LOG,
    COLLECTORS,
    Release,
    pods_can_be_made,
    start_apiserver,
    start_controller_manager,
    start_etcd,
    start_scheduler,
)
from tests.cluster.credentials import Credentials
from tests.cluster.knative import stack
from tests.cluster.knative.stack import Knative
from tests.cluster.processes import ComponentProcess, free_ports, wait_ready

CONTROLLERS = ("controller-manager", "collectors", "scheduler", "jobset", "trainer", "lws", "kuberay", "kwok")
EVERYTHING = ("controller-manager", "scheduler", "jobset", "trainer", "kwok")
TYPES = ("jobset", "trainer")


@dataclass(frozen=True)
class ClusterOptions:
    """The components of a cluster beside etcd and the API server.

    Attributes:
        release: Kubernetes version, feature gates and API versions.
        controllers: any of ``CONTROLLERS``, started in that order; ``collectors`` is a controller manager
            with nothing but the garbage collectors.
        types: ``jobset``, ``trainer``, ``lws``, ``kuberay``: their CRDs are installed even without their
            controllers.
        jobset_gates: feature gates of JobSet that are switched on.
        nodes: number of fake nodes (8 CPUs, 32Gi, 4 GPUs each).
        knative: whether Knative Eventing and Serving's webhook are started as well.
    """

    release: Release = field(default_factory=Release)
    controllers: tuple[str, ...] = EVERYTHING
    types: tuple[str, ...] = TYPES
    jobset_gates: tuple[str, ...] = ()
    nodes: int = 0
    knative: bool = False


@dataclass
class RealCluster:
    """A running cluster.

    Attributes:
        folder: temporary folder of data, credentials and logs.
        pod_network: URL of the HTTP proxy through which the API server reaches pods (`services/proxy`,
            `pods/proxy`); a test may listen there. There is no other pod network.
        service_network: URL of the HTTP proxy through which the API server reaches webhooks of Services.
        processes: the running processes, in order of start.
    """

    folder: Path
    api: KubernetesApi
    credentials: Credentials
    etcd: str
    pod_network: str
    service_network: str
    processes: list[ComponentProcess]
    knative: Knative | None = None

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """The audit log of the requests of Muster's service accounts (see `audit`)."""
        return self.folder / AUDIT_LOG

    def switch(self, release: Release) -> None:
        """Restart API server, controller manager and scheduler with other gates or API versions.

        Stored objects, the address and all tokens stay.
        """
        names = ("kube-scheduler", "kube-controller-manager", "kube-apiserver")
        for process in [self.process(name) for name in names]:
            self.stop_process(process, grace=0)
        port = int(self.api.server.rsplit(":", 1)[1])
        apiserver, _ = start_apiserver(
            release,
            self.credentials,
            self.etcd,
            service_accounts=True,
            pod_network=self.pod_network,
            service_network=self.service_network,
            port=port,
        )
        manager = start_controller_manager(release, self.credentials, self.api.server)
        self.processes += [apiserver, manager, start_scheduler(release, self.credentials, self.api.server)]

    def process(self, name: str) -> ComponentProcess:
        """Return the latest process of that name."""
        return next(process for process in reversed(self.processes) if process.name == name)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a token of an existing service account, and return its path."""
        token = controllers.service_account_token(self.api, namespace, name)
        return self.credentials.kubeconfig(f"{namespace}-{name}", self.api.server, token)

    def add_adapter(self, source: dict[str, object], kubeconfig: Path, sink: str) -> ComponentProcess:
        """Start the receive adapter of an ApiServerSource."""
        process = event_source.start_adapter(source, kubeconfig, sink, self.folder, self.audit_log)
        self.processes.append(process)
        return process

    def stop_process(self, process: ComponentProcess, grace: float = 5.0) -> None:
        """Stop one process and remove it from `processes`."""
        process.stop(grace)
        self.processes.remove(process)

    def stop(self, *, keep_logs: bool = False) -> None:
        """Stop everything, last started first, and remove the folder.

        Everything is killed: on SIGTERM the API server alone would take ten seconds to finish its watches.
        """
        for process in reversed(self.processes):
            process.signal(signal.SIGKILL)
        for process in reversed(self.processes):
            process.stop()
        self.processes.clear()
        if keep_logs:
            remove_folder(self.folder / "etcd")
            print(f"logs are kept in {self.folder}", file=sys.stderr)
        else:
            remove_folder(self.folder)


def remove_folder(folder: Path) -> None:
    """Remove a cluster's data; ignore errors, because a dying process may still write."""
    shutil.rmtree(folder, ignore_errors=True)


def start(options: ClusterOptions, *, port: int = 0) -> RealCluster:
    """Build the components unless they are up to date, and start a cluster."""
    folder = Path(tempfile.mkdtemp(prefix="muster-cluster-"))
    processes: list[ComponentProcess] = []
    try:
        return _start(options, folder, processes, port)
    except BaseException:
        for process in reversed(processes):
            process.stop()
        print(f"logs are kept in {folder}", file=sys.stderr)
        raise


@contextlib.contextmanager
def running(options: ClusterOptions) -> Iterator[RealCluster]:
    """Run a cluster for the length of a block; keep the logs if the block raises."""
    cluster = start(options)
    failed = True
    try:
        yield cluster
        failed = False
    finally:
        cluster.stop(keep_logs=failed)


def _start(
    options: ClusterOptions, folder: Path, processes: list[ComponentProcess], port: int
) -> RealCluster:
    keys = credentials.make(folder)
    etcd, etcd_url = start_etcd(folder)
    processes.append(etcd)
    managed = "controller-manager" in options.controllers
    pod_network, service_network = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    if options.knative:
        pod_network = service_network  # Knative's pods have addresses
        processes.append(stack.start_proxy(folder, service_network))
    apiserver, api = start_apiserver(
        options.release,
        keys,
        etcd_url,
        service_accounts=managed,
        pod_network=pod_network,
        service_network=service_network,
        port=port,
    )
    processes.append(apiserver)
    # Types before controllers: a garbage collector that discovers a new type later resynchronises.
    controllers.install_types(api, options.types)
    starters = {
        "controller-manager": lambda: start_controller_manager(options.release, keys, api.server),
        "collectors": lambda: start_controller_manager(options.release, keys, api.server, COLLECTORS),
        "scheduler": lambda: start_scheduler(options.release, keys, api.server),
        "jobset": lambda: controllers.start_jobset(api, keys, options.jobset_gates),
        "trainer": lambda: controllers.start_trainer(api, keys),
        "lws": lambda: operators.start_lws(api, keys),
        "kuberay": lambda: operators.start_kuberay(api, keys),
        "kwok": lambda: controllers.start_kwok(api, keys),
    }
    # A generator, so that each process is in the list, and gets stopped, if the next one fails to start.
    processes.extend(starters[name]() for name in CONTROLLERS if name in options.controllers)
    for number in range(options.nodes):
        controllers.add_node(api, f"node-{number}")
    for process in processes:
        wait_ready(process, lambda: not managed or pods_can_be_made(api))
    cluster = RealCluster(folder, api, keys, etcd_url, pod_network, service_network, processes)
    if options.knative:
        cluster.knative = stack.start_knative(api, folder, service_network, processes)
    return cluster

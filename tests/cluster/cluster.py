"""The real control plane on loopback: what to start, starting it, stopping it."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster import controllers, credentials, event_source
from tests.cluster.api import Api
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
from tests.cluster.processes import Process, free_ports, wait_ready

CONTROLLERS = ("controller-manager", "collectors", "scheduler", "jobset", "trainer", "kwok")
EVERYTHING = ("controller-manager", "scheduler", "jobset", "trainer", "kwok")
TYPES = ("jobset", "trainer")


@dataclass(frozen=True)
class Options:
    """What a cluster consists of beside etcd and the API server.

    Attributes:
        release: Kubernetes version, feature gates and API versions.
        controllers: any of ``CONTROLLERS``, started in that order; ``collectors`` is a controller manager
            that only carries out deletions.
        types: CRDs of these are served even when their controllers do not run.
        jobset_gates: feature gates of JobSet that are switched on; it has its own.
        nodes: how many fake nodes there are from the start (8 CPUs, 32Gi, 4 GPUs each).
    """

    release: Release = field(default_factory=Release)
    controllers: tuple[str, ...] = EVERYTHING
    types: tuple[str, ...] = TYPES
    jobset_gates: tuple[str, ...] = ()
    nodes: int = 0


@dataclass
class Cluster:
    """A running cluster.

    Attributes:
        folder: temporary folder of data, credentials and logs.
        api: the API as administrator.
        credentials: for kubeconfigs of others.
        etcd: URL of etcd.
        pod_network: URL at which a test may answer, as an HTTP proxy, what the API server asks of pods on
            behalf of others (`services/proxy`, `pods/proxy`); there is no other network of pods.
        processes: what runs, in order of start.
    """

    folder: Path
    api: Api
    credentials: Credentials
    etcd: str
    pod_network: str
    processes: list[Process]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "admin.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """What Muster's service accounts wrote and watched: one audit event (audit.k8s.io/v1) a line."""
        return self.folder / AUDIT_LOG

    def switch(self, release: Release) -> None:
        """Starts API server, controller manager and scheduler anew, with other gates or API versions.

        What is stored stays, and so do the address and everybody's tokens.
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
            port=port,
        )
        manager = start_controller_manager(release, self.credentials, self.api.server)
        self.processes += [apiserver, manager, start_scheduler(release, self.credentials, self.api.server)]

    def process(self, name: str) -> Process:
        """Returns the latest process of that name."""
        return next(process for process in reversed(self.processes) if process.name == name)

    def service_account_kubeconfig(self, namespace: str, name: str) -> Path:
        """Writes a kubeconfig with a token of an existing service account."""
        token = controllers.service_account_token(self.api, namespace, name)
        return self.credentials.kubeconfig(f"{namespace}-{name}", self.api.server, token)

    def add_adapter(self, source: dict[str, object], kubeconfig: Path, sink: str) -> Process:
        """Starts the receive adapter of an ApiServerSource."""
        process = event_source.start_adapter(source, kubeconfig, sink, self.folder, self.audit_log)
        self.processes.append(process)
        return process

    def stop_process(self, process: Process, grace: float = 5.0) -> None:
        """Stops one process and forgets it."""
        process.stop(grace)
        self.processes.remove(process)

    def stop(self, *, keep_logs: bool = False) -> None:
        """Stops everything, last started first, and removes the folder.

        Nothing is stopped politely: the API server alone would take ten seconds to finish its watches, and
        the data goes with the folder.
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
    """Removes a cluster's data; what a dying process writes meanwhile does not matter."""
    shutil.rmtree(folder, ignore_errors=True)


def start(options: Options, *, port: int = 0) -> Cluster:
    """Builds what is missing and starts a cluster.

    Args:
        options: what it consists of.
        port: of the API server; 0 chooses a free one.

    Raises:
        BuildFailed: a component could not be built.
        NotReady: a component did not come up; its log is kept.
    """
    folder = Path(tempfile.mkdtemp(prefix="muster-cluster-"))
    processes: list[Process] = []
    try:
        return _start(options, folder, processes, port)
    except BaseException:
        for process in reversed(processes):
            process.stop()
        print(f"logs are kept in {folder}", file=sys.stderr)
        raise


@contextlib.contextmanager
def running(options: Options) -> Iterator[Cluster]:
    """Starts a cluster and stops it again; the logs are kept when the block raises."""
    cluster = start(options)
    failed = True
    try:
        yield cluster
        failed = False
    finally:
        cluster.stop(keep_logs=failed)


def _start(options: Options, folder: Path, processes: list[Process], port: int) -> Cluster:
    made = credentials.make(folder)
    etcd, etcd_url = start_etcd(folder)
    processes.append(etcd)
    managed = "controller-manager" in options.controllers
    pod_network = f"http://127.0.0.1:{free_ports(1)[0]}"
    apiserver, api = start_apiserver(
        options.release, made, etcd_url, service_accounts=managed, pod_network=pod_network, port=port
    )
    processes.append(apiserver)
    # The types come before the controllers: a garbage collector that meets a new one later resynchronises.
    controllers.install_types(api, options.types)
    starters = {
        "controller-manager": lambda: start_controller_manager(options.release, made, api.server),
        "collectors": lambda: start_controller_manager(options.release, made, api.server, COLLECTORS),
        "scheduler": lambda: start_scheduler(options.release, made, api.server),
        "jobset": lambda: controllers.start_jobset(api, made, options.jobset_gates),
        "trainer": lambda: controllers.start_trainer(api, made),
        "kwok": lambda: controllers.start_kwok(api, made),
    }
    # One by one: each is in the list, and so is stopped, before the next one may fail to start.
    processes.extend(starters[name]() for name in CONTROLLERS if name in options.controllers)
    for number in range(options.nodes):
        controllers.add_node(api, f"node-{number}")
    for process in processes:
        wait_ready(process, lambda: not managed or pods_can_be_made(api))
    return Cluster(folder, api, made, etcd_url, pod_network, processes)

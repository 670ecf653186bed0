"""The peers of create_workload: they watch Jobs, and so are measured by the Workloads that appear."""

from __future__ import annotations

import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench.control_plane import ControlPlane
from bench.subjects import PATIENCE, PEERS, Subject, cpu_per_event, running
from muster.objects.resources import JOBS, WORKLOADS
from tests.e2e.support.owners import a_job

REST = 1.0
"""Seconds after which a peer has no work left; kopf handles the events of its own writes 0.1 s late."""


class Watcher:
    """A running peer, its namespace, and the Workloads that it creates there.

    Args:
        plane: the API server.
        subject: the process.
        namespace: the only one that it watches.
        sizes: how many Jobs of a round are created one after another, and how many together.
    """

    def __init__(self, plane: ControlPlane, subject: Subject, namespace: str, sizes: tuple[int, int]) -> None:
        self._plane = plane
        self._sizes = sizes
        self._subject = subject
        self._namespace = namespace
        self._numbers = iter(range(10**6))
        self._created: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._watch, daemon=True).start()
        self._one_by_one(self._names(1))

    def round(self) -> dict[str, float]:
        """Create Jobs and wait for their Workloads, then change the Jobs in a way that means nothing."""
        measured: dict[str, float] = {}
        first, second = (self._names(size) for size in self._sizes)
        count = len(first) + len(second)

        def act() -> None:
            measured["one after another"] = self._one_by_one(first)
            measured["four at once"] = self._together(second)
            time.sleep(REST)

        def change() -> None:
            for name in (*first, *second):
                self._change(name)
            time.sleep(REST)

        measured["CPU per event"] = cpu_per_event(self._subject, count, act)
        measured["changes nothing, CPU per event"] = cpu_per_event(self._subject, count, change)
        measured["resident memory"] = self._subject.resident()
        return measured

    def _one_by_one(self, names: Sequence[str]) -> float:
        """Create one Job after another; return how many Workloads appear per second of waiting."""
        waited = 0.0
        for name in names:
            self._create(name)
            began = time.perf_counter()
            self._wait_for(1)
            waited += time.perf_counter() - began
        return len(names) / waited

    def _together(self, names: Sequence[str]) -> float:
        """Create Jobs while the peer is stopped; return how many Workloads appear per second after that."""
        self._subject.signal(signal.SIGSTOP)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._create, names))
        began = time.perf_counter()
        self._subject.signal(signal.SIGCONT)
        self._wait_for(len(names))
        return len(names) / (time.perf_counter() - began)

    def _names(self, count: int) -> list[str]:
        return [f"gang-{next(self._numbers):04d}" for _ in range(count)]

    def _create(self, name: str) -> None:
        self._plane.must("POST", JOBS.path(namespace=self._namespace), a_job(name, pods=4))

    def _change(self, name: str) -> None:
        """Report an active pod, as the Job controller does."""
        path = JOBS.path(name, self._namespace, "status")
        self._plane.must("PATCH", path, {"status": {"active": 1}}, "application/merge-patch+json")

    def _wait_for(self, count: int) -> None:
        for _ in range(count):
            try:
                self._created.get(timeout=PATIENCE)
            except queue.Empty:
                raise self._subject.failed("no Workload appeared") from None

    def _watch(self) -> None:
        for event in self._plane.cluster.api.watch(WORKLOADS.path(namespace=self._namespace)):
            if event["type"] == "ADDED":
                self._created.put(event["object"]["metadata"]["name"])


def kopf_command(namespace: str) -> list[str]:
    """Return the command of the operator in kopf."""
    options = ["--quiet", "--standalone", "--namespace", namespace]
    return [sys.executable, "-m", "kopf", "run", *options, str(PEERS / "kopf_peer.py")]


def informer_command(namespace: str) -> list[str]:
    """Return the command of the controller with informers."""
    return [sys.executable, "-m", "bench.peers.informer_peer", namespace]


@contextmanager
def watching(
    plane: ControlPlane, command: Callable[[str], list[str]], sizes: tuple[int, int]
) -> Iterator[Watcher]:
    """Run a peer for the length of a block."""
    namespace = plane.new_namespace()
    environment = {"KUBECONFIG": str(plane.cluster.kubeconfig)}
    log = plane.new_file("peer.log")
    with running(command(namespace), log, environment) as subject:
        yield Watcher(plane, subject, namespace, sizes)

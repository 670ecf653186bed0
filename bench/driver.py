"""A process that creates Jobs or TrainJobs and times when the last pod of each is bound.

It is a process of its own because the broker's threads are in that of the benchmark. Pods are watched with
their metadata only and `spec.nodeName!=`, so that a pod appears when it is bound and costs little to read.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TextIO, cast
from urllib.parse import urlsplit

from tests.cluster import manifests
from tests.cluster.api import JSON, KubernetesApi

Object = dict[str, Any]
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
OWNER_LABELS = ("jobset.sigs.k8s.io/jobset-name", "batch.kubernetes.io/job-name")
WATCH_SECONDS = 1800


class NotBound(RuntimeError):
    """Some pods were not bound in time, or an owner was refused."""


@dataclass(frozen=True)
class Timing:
    """When owners were created and bound, in seconds since the first request.

    Attributes:
        created: when the request was sent, by owner.
        bound: when the watch delivered the last pod with a node, by owner.
    """

    created: Mapping[str, float]
    bound: Mapping[str, float]

    @property
    def delays(self) -> list[float]:
        """Seconds from the request to the last bound pod, in the order of the requests."""
        return [self.bound[name] - created for name, created in self.created.items()]

    @property
    def wall(self) -> float:
        """Seconds from the first request to the last bound pod of all."""
        return max(self.bound.values()) - min(self.created.values())


class Driver:
    """The benchmark's side: starts the process and sends it work.

    Args:
        kubeconfig: the administrator's.
        namespace: where owners are created.
    """

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        command = [sys.executable, "-m", "bench.driver", str(kubeconfig), namespace]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._stdin, self._stdout = cast(TextIO, self._process.stdin), cast(TextIO, self._process.stdout)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def run(
        self, owners: Sequence[Object], pods: int, *, connections: int = 4, seconds: float = 120
    ) -> Timing:
        """Create owners as fast as the API server takes them, and wait until all their pods are bound.

        Args:
            owners: Jobs or TrainJobs, with the driver's namespace.
            pods: of each owner.
            connections: requests at a time.
            seconds: time after which this fails.

        Raises:
            NotBound: an owner was refused, or pods were not bound in time.
        """
        work = {"owners": owners, "pods": pods, "connections": connections, "seconds": seconds}
        self._stdin.write(json.dumps(work) + "\n")
        self._stdin.flush()
        answer = json.loads(self._stdout.readline() or '{"error": "the driver ended"}')
        if "error" in answer:
            raise NotBound(answer["error"])
        return Timing(**answer)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


class Session:
    """A connection to the API server that stays open."""

    def __init__(self, api: KubernetesApi) -> None:
        address = urlsplit(api.server)
        context = ssl.create_default_context(cadata=api.certificate_authority)
        host = address.hostname or "127.0.0.1"
        self._connection = http.client.HTTPSConnection(
            host, address.port, timeout=WATCH_SECONDS, context=context
        )
        self._connection.connect()  # now, so that no request pays for the handshake
        self._headers = {"Authorization": f"Bearer {api.token}", "Content-Type": JSON}

    def post(self, path: str, body: bytes) -> None:
        """Create an object.

        Raises:
            NotBound: it was refused.
        """
        self._connection.request("POST", path, body, {**self._headers, "Accept": METADATA})
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 201:
            raise NotBound(f"{path}: {response.status} {answer.decode(errors='replace')}")

    def bound_pods(self, namespace: str, version: str) -> Iterator[Object]:
        """Yield metadata of each pod when it is bound, until the server ends the watch.

        Args:
            namespace: of the pods.
            version: resourceVersion to begin after; empty for now.

        Raises:
            NotBound: the watch cannot go on from there.
        """
        query = f"watch=true&timeoutSeconds={WATCH_SECONDS}&fieldSelector=spec.nodeName!%3D"
        path = f"/api/v1/namespaces/{namespace}/pods?{query}&resourceVersion={version}"
        self._connection.request("GET", path, None, {**self._headers, "Accept": METADATA})
        response = self._connection.getresponse()
        while line := response.readline():
            change = json.loads(line)
            if change["type"] == "ERROR":
                raise NotBound(f"the watch of pods ended: {change['object']}")
            yield change["object"]["metadata"]


class BoundPods:
    """The number of bound pods of each owner, and when the latest one was bound; thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._counts: Counter[str] = Counter()
        self._latest: dict[str, float] = {}
        self._known: set[str] = set()
        self._error: NotBound | None = None

    def watch(self, api: KubernetesApi, namespace: str) -> None:
        """Note every pod that is bound from now on; does not return."""
        version = ""
        try:
            while True:  # the API server ends a watch that does not keep pace with a burst
                for metadata in Session(api).bound_pods(namespace, version):
                    version = metadata["resourceVersion"]
                    self.note(metadata, time.perf_counter())
        except (NotBound, OSError) as error:
            with self._changed:
                self._error = NotBound(str(error))
                self._changed.notify_all()

    def note(self, metadata: Object, now: float) -> None:
        """Count a pod that was bound, unless it has been counted."""
        labels = metadata["labels"]
        owner = next(labels[label] for label in OWNER_LABELS if label in labels)
        with self._changed:
            if metadata["uid"] not in self._known:
                self._known.add(metadata["uid"])
                self._counts[owner] += 1
                self._latest[owner] = now
                self._changed.notify_all()

    def wait(self, owners: Sequence[str], pods: int, seconds: float) -> dict[str, float]:
        """Return by owner when the last of so many pods was bound.

        Raises:
            NotBound: not in time, or the watch ended.
        """
        waiting = list(owners)

        def all_bound() -> bool:
            if self._error:
                raise self._error
            while waiting and self._counts[waiting[-1]] >= pods:
                waiting.pop()
            return not waiting

        with self._changed:
            if not self._changed.wait_for(all_bound, seconds):
                missing = {name: self._counts[name] for name in owners if self._counts[name] < pods}
                example = dict(list(missing.items())[:5])
                raise NotBound(
                    f"{len(missing)} of {len(owners)} not bound after {seconds} s, such as {example}"
                )
            return {name: self._latest[name] for name in owners}


def create(api: KubernetesApi, owners: Sequence[Object], connections: int) -> dict[str, float]:
    """Create owners over several connections; return by name when each request was sent.

    Raises:
        NotBound: one was refused.
    """
    queue: SimpleQueue[tuple[str, str, bytes]] = SimpleQueue()
    for owner in owners:
        queue.put((owner["metadata"]["name"], manifests.collection(owner), json.dumps(owner).encode()))
    created: dict[str, float] = {}
    errors: list[NotBound] = []

    def send() -> None:
        session = Session(api)
        try:
            while not errors:
                name, path, body = queue.get_nowait()
                created[name] = time.perf_counter()
                session.post(path, body)
        except Empty:
            return
        except NotBound as error:
            errors.append(error)

    threads = [threading.Thread(target=send) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return created


def work(api: KubernetesApi, watched: BoundPods, task: Mapping[str, Any]) -> Timing:
    """Do what `Driver.run` asks."""
    sent = create(api, task["owners"], min(task["connections"], len(task["owners"])))
    latest = watched.wait(list(sent), task["pods"], task["seconds"])
    first = min(sent.values())
    return Timing(
        {name: at - first for name, at in sent.items()}, {name: latest[name] - first for name in sent}
    )


def main() -> None:
    """Read tasks from stdin, one a line, and answer each on stdout."""
    kubeconfig, namespace = sys.argv[1:]
    api = KubernetesApi.from_kubeconfig(Path(kubeconfig))
    watched = BoundPods()
    threading.Thread(target=watched.watch, args=(api, namespace), daemon=True).start()
    for line in sys.stdin:
        try:
            answer: Mapping[str, Any] = asdict(work(api, watched, json.loads(line)))
        except NotBound as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

"""Everything that happened to the objects of one namespace, in the order in which the API server wrote it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cluster.api import Api
from tests.cluster.processes import until

Object = dict[str, Any]

KINDS = {
    "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainjobs",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Workload": "/apis/scheduling.k8s.io/{version}/namespaces/{}/workloads",
    "PodGroup": "/apis/scheduling.k8s.io/{version}/namespaces/{}/podgroups",
    "CompositePodGroup": "/apis/scheduling.k8s.io/v1alpha3/namespaces/{}/compositepodgroups",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
}
NOT_SERVED = 404
INITIALIZING = 429
"""What an API server answers that is ready and has not read all objects of the kind yet."""
PATIENCE = 60.0
"""Seconds; what is waited for comes within a few, unless the machine has much else to do."""
_ASK_AGAIN = 0.2

SCHEDULING_VERSIONS = {"1.37": "v1beta1", "1.36": "v1alpha2"}


@dataclass(frozen=True, order=True)
class Entry:
    """One change of one object, as a watch saw it.

    Attributes:
        version: the resourceVersion of the change. One etcd gives them to all kinds, so they order changes of
            different kinds, which watches deliver in any order.
        seconds: when the watch saw it, since the recording began.
        change: ADDED, MODIFIED or DELETED.
    """

    version: int
    seconds: float = field(compare=False)
    change: str = field(compare=False)
    kind: str = field(compare=False)
    body: Object = field(compare=False)

    @property
    def name(self) -> str:
        """The object's name."""
        name: str = self.body["metadata"]["name"]
        return name


class Recording:
    """Watches a namespace from its beginning to the end of a story."""

    def __init__(self, api: Api, namespace: str, release: str = "1.37", watch_seconds: int = 3600) -> None:
        self._api = api
        self._watch_seconds = watch_seconds
        self._entries: list[Entry] = []
        self._now: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self._changed = threading.Condition()
        self._began = time.monotonic()
        self._errors: list[str] = []
        self._connections: list[http.client.HTTPConnection] = []
        self._threads: list[threading.Thread] = []
        self._paths: dict[str, str] = {}
        self._stopped = False
        version = SCHEDULING_VERSIONS[release]
        for kind, template in KINDS.items():
            path = template.format(namespace, version=version)
            if self._is_served(path):
                self.follow(kind, path)

    def follow(self, kind: str, path: str) -> None:
        """Watches one more kind, from the objects that a collection holds now."""
        self._paths[kind] = path
        self._watch(kind, path, "0")

    def entries(self) -> list[Entry]:
        """Returns what happened so far, in the API server's order."""
        with self._changed:
            self._refuse_gaps()
            return sorted(self._entries)

    def now(self, kind: str) -> dict[str, Object]:
        """Returns the objects of a kind that exist, by name."""
        with self._changed:
            self._refuse_gaps()
            return dict(self._now[kind])

    def wait(self, what: str, condition: Callable[[Recording], bool], seconds: float = PATIENCE) -> None:
        """Waits until a condition on this recording holds, asking again at every change and between them.

        Raises:
            AssertionError: it still does not hold after the seconds.
        """
        deadline = time.monotonic() + seconds
        while not condition(self):
            rest = deadline - time.monotonic()
            assert rest > 0, f"after {seconds:.0f} s still not: {what}"
            with self._changed:
                # Never long: a change that came while the condition was asked is not told again.
                self._changed.wait(min(rest, _ASK_AGAIN))

    def quiet(self, seconds: float = 2.0) -> None:
        """Waits until nothing but Events has changed for so many seconds."""
        while True:
            with self._changed:
                last = max((entry.seconds for entry in self._entries if entry.kind != "Event"), default=0.0)
                rest = last + seconds - self._elapsed()
                if rest <= 0:
                    return
                self._changed.wait(rest)

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Watches nothing for the length of a block, in which the API server is started anew.

        After it every object that changed meanwhile is one more entry, with its last state; a kind that is
        no longer served stays as it was.
        """
        self.stop()
        yield
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._connections.clear()
        self._stopped = False
        for kind, path in self._paths.items():
            self._catch_up(kind, path)

    def stop(self) -> None:
        """Ends the watches: a hundred stories would leave the API server with hundreds of them."""
        self._stopped = True
        for connection in self._connections:
            # The watching thread sits in a read, which only the end of the stream ends.
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _refuse_gaps(self) -> None:
        if self._errors:
            raise AssertionError(f"the recording has gaps: {self._errors}")

    def _is_served(self, path: str) -> bool:
        until(lambda: self._status(path) != INITIALIZING, 60)
        return self._status(path) != NOT_SERVED

    def _status(self, path: str) -> int:
        return self._api.request("GET", path).status

    def _catch_up(self, kind: str, path: str) -> None:
        if not self._is_served(path):
            return
        listed = self._api.must("GET", path)
        version: str = listed["metadata"]["resourceVersion"]
        before = self.now(kind)
        now = {item["metadata"]["name"]: {"kind": kind, **item} for item in listed["items"]}
        for name in before.keys() - now.keys():
            metadata = {**before[name]["metadata"], "resourceVersion": version}
            self._take(kind, {"type": "DELETED", "object": {**before[name], "metadata": metadata}})
        for name, body in now.items():
            change = "MODIFIED" if name in before else "ADDED"
            if name not in before or _version(before[name]) != _version(body):
                self._take(kind, {"type": change, "object": body})
        self._watch(kind, path, version)

    def _watch(self, kind: str, path: str, version: str) -> None:
        thread = threading.Thread(
            target=self._follow, args=(kind, path, version), name=f"watch-{kind}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def _follow(self, kind: str, path: str, version: str) -> None:
        """Goes on from the last version where a watch ends: the server ends those that read too slowly."""
        try:
            while not self._stopped:
                for event in self._api.watch(path, version, self._watch_seconds, self._connections.append):
                    if self._stopped:
                        return
                    if event["type"] == "ERROR":
                        self._gap(f"{kind}: {event['object'].get('message')}")
                        return
                    self._take(kind, event)
                    version = str(max(int(version), _version(event["object"])))
        except Exception as error:  # noqa: BLE001 - a thread's error has to reach the story, whatever it is
            self._gap(f"{kind}: {error!r}")

    def _gap(self, why: str) -> None:
        if self._stopped:
            return
        with self._changed:
            self._errors.append(why)
            self._changed.notify_all()

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        entry = Entry(_version(event["object"]), self._elapsed(), event["type"], kind, event["object"])
        with self._changed:
            self._entries.append(entry)
            remember(self._now[kind], entry)
            self._changed.notify_all()

    def _elapsed(self) -> float:
        return time.monotonic() - self._began


def _version(body: Object) -> int:
    return int(body["metadata"]["resourceVersion"])


def state(entries: Iterable[Entry], kind: str) -> dict[str, Object]:
    """Returns the objects of a kind that exist after the entries, by name."""
    objects: dict[str, Object] = {}
    for entry in entries:
        if entry.kind == kind:
            remember(objects, entry)
    return objects


def remember(objects: dict[str, Object], entry: Entry) -> None:
    """Lets objects by name be what they are after an entry."""
    if entry.change == "DELETED":
        objects.pop(entry.name, None)
    else:
        objects[entry.name] = entry.body

"""The timeline of a namespace of a real cluster: the recorder of `muster run` over HTTP, without gaps.

A story of a real cluster must not be judged by what was not seen, so reading a recording that has gaps fails.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Self

from muster.cluster.errors import ClusterError, Gone, Unavailable, from_answer
from muster.local.stories.watching import Entry, TimelineRecorder
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    EVENTS,
    JOBS,
    JOBSETS,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.replay.snapshots import Object, Objects
from tests.cluster.api import Answer, Api
from tests.cluster.processes import until

INITIALIZING = 429
"""What an API server answers that is ready and has not read all objects of the kind yet."""
PATIENCE = 60.0
"""Seconds; what is waited for comes within a few, unless the machine has much else to do."""

SCHEDULING_VERSIONS = {"1.37": "v1beta1", "1.36": "v1alpha2"}


def kinds(release: str) -> list[Resource]:
    """Return what a story is made of, in the API versions of a release."""
    version = SCHEDULING_VERSIONS[release]
    scheduling = [replace(resource, version=version) for resource in (WORKLOADS, POD_GROUPS)]
    return [TRAINJOBS, JOBSETS, JOBS, *scheduling, COMPOSITE_POD_GROUPS, PODS, EVENTS]


class Namespace:
    """The recorder's source: one namespace, read over HTTP, whose watches can be ended at any moment."""

    def __init__(self, api: Api, name: str) -> None:
        self._api = api
        self._name = name
        self._connections: list[http.client.HTTPConnection] = []

    def list_with_version(self, resource: Resource, /) -> tuple[Objects, str]:
        """Return all objects of a kind and the version of the list; waits for a server that initializes.

        Raises:
            Gone: the kind is not served.
        """
        path = resource.path(namespace=self._name)
        answers: list[Answer] = []

        def is_initialized() -> bool:
            answers.append(self._api.request("GET", path))
            return answers[-1].status != INITIALIZING

        try:
            until(is_initialized, 60)
        except OSError as error:
            raise Unavailable(repr(error)) from error
        answer = answers[-1]
        if not answer.ok:
            raise from_answer(answer.status, answer.body, {})
        of_kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [of_kind | item for item in answer.body["items"]], answer.body["metadata"]["resourceVersion"]

    def watch(
        self, resource: Resource, /, *, resource_version: str, timeout_seconds: int
    ) -> Iterator[tuple[str, Object]]:
        """Yield each change of a kind after a version, until the server ends the watch or `hang_up` does.

        Raises:
            ClusterError: the watch was refused or broke off.
        """
        path = resource.path(namespace=self._name)
        try:
            for event in self._api.watch(path, resource_version, timeout_seconds, self._connections.append):
                _refuse_errors(event)
                yield event["type"], event["object"]
        except ClusterError:
            raise
        except Exception as error:
            raise Unavailable(repr(error)) from error

    def hang_up(self) -> None:
        """End all watches: a hundred stories would leave the API server with hundreds of them."""
        for connection in self._connections:
            # The watching thread sits in a read, which only the end of the stream ends.
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._connections.clear()


class Recording:
    """Everything that happens in a namespace from its beginning to the end of a story.

    Attributes:
        began: seconds since the epoch.
    """

    def __init__(self, api: Api, namespace: str, release: str = "1.37", watch_seconds: int = 3600) -> None:
        self.began = time.time()
        self._source = Namespace(api, namespace)
        self._recorder = TimelineRecorder(self._source, [], watch_seconds)
        for resource in kinds(release):
            with contextlib.suppress(Gone):
                self.follow(resource)

    def follow(self, resource: Resource) -> None:
        """Watch one more kind, from the objects that exist now.

        Raises:
            Gone: it is not served.
        """
        self._recorder.follow(resource)

    def entries(self) -> list[Entry]:
        """Return what happened so far, in the API server's order."""
        self._refuse_gaps()
        return self._recorder.history()

    def now(self, kind: str) -> dict[str, Object]:
        """Return the objects of a kind that exist, by name."""
        self._refuse_gaps()
        return {one["metadata"]["name"]: one for one in self._recorder.objects() if one["kind"] == kind}

    def wait(self, what: str, condition: Callable[[Self], object], seconds: float = PATIENCE) -> None:
        """Wait until a condition on this recording holds, asking again at every change and between them.

        Raises:
            AssertionError: it still does not hold after the seconds.
        """
        held = self._recorder.until(lambda: condition(self), seconds)
        assert held, f"after {seconds:.0f} s still not: {what}"

    def quiet(self, seconds: float = 2.0) -> None:
        """Wait until nothing but Events has changed for so many seconds."""
        while (rest := self._last_change() + seconds - time.time()) > 0:
            time.sleep(rest)

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Watch nothing for the length of a block, in which the API server is started anew.

        After it every object that changed meanwhile is one more entry, with its last state; a kind that is
        no longer served stays as it was.
        """
        self.stop()
        yield
        self._recorder.resume()

    def stop(self) -> None:
        """Record nothing more."""
        self._recorder.stop()
        self._source.hang_up()

    def _last_change(self) -> float:
        return max((entry.at for entry in self.entries() if entry.kind != "Event"), default=self.began)

    def _refuse_gaps(self) -> None:
        gaps = self._recorder.gaps()
        assert not gaps, f"the recording has gaps: {gaps}"


def _refuse_errors(event: Object) -> None:
    """Raise the error that a watch delivers in place of a change, or of everything."""
    if event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
        status = event.get("object") or event
        raise from_answer(int(status.get("code") or 0), status, {})

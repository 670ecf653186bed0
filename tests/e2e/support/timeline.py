"""The timeline of a namespace of a real cluster, recorded over HTTP by the recorder of `muster run`.

Reading a recording with gaps fails, because a law could pass only for lack of the entry that breaks it.
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
from tests.cluster.api import ApiResponse, KubernetesApi
from tests.cluster.processes import until

INITIALIZING = 429
"""Status of a server that is ready but has not read all objects of the kind yet."""
PATIENCE = 60.0
"""Seconds to wait for a condition; on an idle machine it holds within a few."""

SCHEDULING_VERSIONS = {"1.37": "v1beta1", "1.36": "v1alpha2"}


def kinds(release: str) -> list[Resource]:
    """Return the kinds that are recorded, in the API versions of a release."""
    version = SCHEDULING_VERSIONS[release]
    scheduling = [replace(resource, version=version) for resource in (WORKLOADS, POD_GROUPS)]
    return [TRAINJOBS, JOBSETS, JOBS, *scheduling, COMPOSITE_POD_GROUPS, PODS, EVENTS]


class NamespaceSource:
    """A source for the recorder: lists and watches one namespace; `hang_up` ends its watches."""

    def __init__(self, api: KubernetesApi, name: str) -> None:
        self._api = api
        self._name = name
        self._connections: list[http.client.HTTPConnection] = []

    def list_with_version(self, resource: Resource, /) -> tuple[Objects, str]:
        """Return all objects of a kind and the list's resourceVersion; wait while the server initializes."""
        path = resource.path(namespace=self._name)
        answers: list[ApiResponse] = []

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
        """Yield each change of a kind after a version, until the server or `hang_up` ends the watch."""
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
        """End all watches, so that the watches of ended stories do not load the API server."""
        for connection in self._connections:
            # The watching thread blocks in a read until the stream ends.
            with contextlib.suppress(OSError, AttributeError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        self._connections.clear()


class StoryRecording:
    """All changes in a namespace from the beginning to the end of a story.

    Attributes:
        began: start of the recording, in seconds since the epoch.
    """

    def __init__(
        self, api: KubernetesApi, namespace: str, release: str = "1.37", watch_seconds: int = 3600
    ) -> None:
        self.began = time.time()
        self._source = NamespaceSource(api, namespace)
        self._recorder = TimelineRecorder(self._source, [], watch_seconds)
        for resource in kinds(release):
            with contextlib.suppress(Gone):
                self.follow(resource)

    def follow(self, resource: Resource) -> None:
        """Record one more kind, beginning with the objects that exist."""
        self._recorder.follow(resource)

    def entries(self) -> list[Entry]:
        """Return the changes so far, in order of resourceVersion."""
        self._refuse_gaps()
        return self._recorder.history()

    def now(self, kind: str) -> dict[str, Object]:
        """Return the existing objects of a kind, by name."""
        self._refuse_gaps()
        return {obj["metadata"]["name"]: obj for obj in self._recorder.objects() if obj["kind"] == kind}

    def wait(self, what: str, condition: Callable[[Self], object], seconds: float = PATIENCE) -> None:
        """Wait until a condition on this recording holds; check it at every change and between changes."""
        held = self._recorder.until(lambda: condition(self), seconds)
        assert held, f"after {seconds:.0f} s still not: {what}"

    def quiet(self, seconds: float = 2.0) -> None:
        """Wait until no object except Events has changed for this number of seconds."""
        while (rest := self._last_change() + seconds - time.time()) > 0:
            time.sleep(rest)

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Stop watching for the length of a block, in which the API server is restarted.

        Afterwards every object that changed meanwhile gets one entry with its last state; objects of a kind
        that is no longer served stay in the recording.
        """
        self.stop()
        yield
        until(self._watches_ended, 60)
        self._recorder.resume()

    def stop(self) -> None:
        """Stop recording."""
        self._recorder.stop()
        self._source.hang_up()

    def _watches_ended(self) -> bool:
        """Hang up again, since a watch may have been connecting, and return whether no watch is left."""
        self._source.hang_up()
        return self._recorder.idle

    def _last_change(self) -> float:
        return max((entry.at for entry in self.entries() if entry.kind != "Event"), default=self.began)

    def _refuse_gaps(self) -> None:
        gaps = self._recorder.gaps()
        assert not gaps, f"the recording has gaps: {gaps}"


def _refuse_errors(event: Object) -> None:
    """Raise the error that a watch delivered instead of a change."""
    if event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
        status = event.get("object") or event
        raise from_answer(int(status.get("code") or 0), status, {})

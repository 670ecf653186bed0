"""The recorder of a story records every change, also after a watch ended or its version expired."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from muster.cluster.errors import Expired
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.local.stories.watching import TimelineRecorder
from muster.objects.resources import JOBS
from tests.support.builders import a_job, named, of_uid

HOME = "team-a"
CHANGES = [("ADDED", "last"), ("ADDED", "new"), ("DELETED", "gone"), ("MODIFIED", "changed")]


def _job(name: str, version: str) -> Object:
    job = a_job(named(name), of_uid(f"{name}-uid"))
    job["metadata"]["resourceVersion"] = version
    return job


class Forgetful(Client):
    """An API server whose history begins at version 9: three Jobs were there before."""

    def __init__(self) -> None:
        self.lists = [
            ([_job("same", "1"), _job("changed", "2"), _job("gone", "3")], "5"),
            ([_job("same", "1"), _job("changed", "7"), _job("new", "8")], "9"),
        ]
        self.resumed = threading.Event()

    def list_with_version(self, *_: Any, **__: Any) -> tuple[list[Object], str]:
        """The next one."""
        return self.lists.pop(0)

    def watch(self, *_: Any, resource_version: str = "", **__: Any) -> Iterator[tuple[str, Object]]:
        """From version 9 on: one more Job."""
        if resource_version == "5":
            raise Expired("too old resource version: 5 (9)")
        if not self.resumed.is_set():
            yield "ADDED", _job("last", "10")
            self.resumed.set()


def test_changes_that_the_server_forgot_are_taken_from_a_list() -> None:
    """The watch goes on from there, and the gap is noted for callers that need a complete history."""
    client = Forgetful()
    with TimelineRecorder(client, [JOBS]) as recorder:
        assert client.resumed.wait(5)
        changes = {(entry.change, entry.name): entry.version for entry in recorder.history(HOME)}
        names = {obj["metadata"]["name"] for obj in recorder.objects()}
        assert recorder.gaps()[0].startswith("Job: ")
    assert sorted(changes) == CHANGES
    assert changes["DELETED", "gone"] == 9
    assert names == {"same", "changed", "new", "last"}

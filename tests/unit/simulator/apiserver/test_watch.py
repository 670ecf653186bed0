"""Watches of the embedded API server during concurrent writes."""

from __future__ import annotations

import json
import threading
from itertools import count
from types import TracebackType

import pytest

from muster.simulator.apiserver.handlers import watch
from muster.simulator.apiserver.http.requests import Request
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.store import Store, encoded

CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")


class _Lock:
    """A lock that knows whether it is held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.held = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.held += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.held -= 1
        self._lock.release()


class _BusyStore(Store):
    """A store that is written to at every read of its version that does not lock others out."""

    def __init__(self) -> None:
        super().__init__()
        self._held = _Lock()
        self.lock = self._held  # type: ignore[assignment]  # it has what `with` needs
        self._numbers = count()

    @property
    def version(self) -> int:
        """The version of the latest change, which may be a moment old."""
        if not self._held.held:
            name = f"late-{next(self._numbers)}"
            self.put(CONFIG_MAPS.group_resource, {"metadata": {"name": name, "namespace": "a", "uid": name}})
        return super().version


def test_a_bookmark_never_skips_an_unsent_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who resumes from it would miss the change."""
    monkeypatch.setattr(watch, "BOOKMARK_SECONDS", 0.01)
    monkeypatch.setattr(watch, "IDLE_CHECK_SECONDS", 0.01)
    query = {"allowWatchBookmarks": "true"}
    followed = watch.Watch(
        _BusyStore(),
        CONFIG_MAPS,
        Request("GET", "/api/v1/configmaps", query, {}),
        lambda _found: True,
        lambda record: encoded("v1", "ConfigMap", record),
        lambda: False,
        version=1,
        seconds=0.1,
    )
    seen = [json.loads(event) for event in followed.events() if event]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in seen]
    missed = [
        event
        for number, event in enumerate(seen)
        if event["type"] != "BOOKMARK" and versions[number] <= max(versions[:number], default=0)
    ]
    assert "BOOKMARK" in {event["type"] for event in seen}
    assert not missed

"""How many pages of lists events read at once: they take memory before they count."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from muster.cluster.paging import Page
from muster.objects.resources import PODS
from muster.runtime.sharing.deadline_client import DeadlineClient, DeadlineExceeded
from muster.runtime.sharing.list_memory import PAGES_AT_ONCE, SharedListMemory
from tests.unit.runtime.fakes import FakeCluster

MEMORY = 2**20


class SlowPages(FakeCluster):
    """Notes how many pages are read at once."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = self.most = 0

    def page(self, *_: Any, **__: Any) -> Page:
        """An empty page, after a while."""
        self.reading += 1
        self.most = max(self.most, self.reading)
        time.sleep(0.02)
        self.reading -= 1
        return Page([], "")


def test_a_few_pages_are_read_at_once() -> None:
    """37 events that each read 8 MiB took 300 MiB that counted nowhere."""
    cluster, shared = SlowPages(), SharedListMemory(MEMORY)

    def list_pods(_number: int) -> int:
        client = DeadlineClient(cluster, 10, memory=shared)
        client.begin()
        return len(client.list(PODS, "team-a"))

    with ThreadPoolExecutor(37) as events:
        assert list(events.map(list_pods, range(37))) == [0] * 37
    assert 1 < cluster.most <= PAGES_AT_ONCE


def test_the_wait_for_other_pages_ends_at_the_deadline() -> None:
    """The broker delivers the event again."""
    shared = SharedListMemory(MEMORY)
    for _ in range(PAGES_AT_ONCE):
        shared.pages.acquire()
    client = DeadlineClient(SlowPages(), 0.05, memory=shared)
    client.begin()
    with pytest.raises(DeadlineExceeded, match="pages of other events"):
        client.list(PODS, "team-a")
    for _ in range(PAGES_AT_ONCE):
        shared.pages.release()

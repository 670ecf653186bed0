"""The controller interface, the delayed work queue, and the single worker that reconciles and writes."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from muster.cluster.errors import ClusterError
from muster.cluster.interface import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.framework.cache import Cache
from muster.simulator.controllers.framework.execute import Executor
from muster.simulator.controllers.framework.writes import Result

log = logging.getLogger(__name__)

FIRST_RETRY = 0.02
LAST_RETRY = 1.0
"""Seconds until a failed key is retried: doubled with each failure, from FIRST_RETRY up to LAST_RETRY."""

Key = tuple[str, ...]


@dataclass(frozen=True)
class ReconcileRequest:
    """A key to reconcile and the delay in seconds until then."""

    key: Key
    after: float = 0.0


class Controller(Protocol):
    """A level-triggered simulated controller, by the name that enables it and the kinds that it reads."""

    name: str
    watches: tuple[Resource, ...]

    def requests_for(self, resource: Resource, item: Object, /) -> Iterable[ReconcileRequest]:
        """Return the keys to reconcile after this object was added, changed or deleted."""
        ...

    def reconcile(self, key: Key, cache: Cache, now: float, /) -> Result:
        """Return the writes that move a key towards its desired state; `now` in seconds since the epoch."""
        ...


class Queue:
    """A delayed work queue: each key is queued once, at the earliest time requested."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, tuple[str, Key]]] = []
        self._due: dict[tuple[str, Key], float] = {}
        self._order = itertools.count()
        self._closed = False

    def add(self, item: tuple[str, Key], after: float = 0.0) -> None:
        """Queue a key to be due in `after` seconds, unless it is due earlier."""
        due = self._clock() + after
        with self._changed:
            if due >= self._due.get(item, float("inf")):
                return
            self._due[item] = due
            heapq.heappush(self._heap, (due, next(self._order), item))
            self._changed.notify()

    def take(self) -> tuple[str, Key] | None:
        """Wait for the next due key and return it; None once the queue is closed."""
        with self._changed:
            while not self._closed:
                wait: float | None = None
                if self._heap:
                    due, _, item = self._heap[0]
                    wait = due - self._clock()
                    if self._due.get(item) != due:
                        heapq.heappop(self._heap)  # stale: the key was queued again with an earlier time
                        continue
                    if wait <= 0:
                        heapq.heappop(self._heap)
                        del self._due[item]
                        return item
                self._changed.wait(wait)
        return None

    def close(self) -> None:
        """Close the queue: `take` returns None."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Worker:
    """The single thread that reconciles keys and executes the resulting writes."""

    def __init__(self, controllers: Iterable[Controller], cache: Cache, executor: Executor) -> None:
        self._controllers = {controller.name: controller for controller in controllers}
        self._cache = cache
        self._executor = executor
        self._failures: dict[tuple[str, Key], int] = {}
        self.queue = Queue()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Start the thread; call after the cache has synced."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current reconcile."""
        self.queue.close()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def changed(self, resource: Resource, item: Object) -> None:
        """Queue the keys of every controller that watches this kind."""
        for controller in self._controllers.values():
            if resource in controller.watches:
                for request in controller.requests_for(resource, item):
                    self.queue.add((controller.name, request.key), request.after)

    def _run(self) -> None:
        while (item := self.queue.take()) is not None:
            try:
                after = self._reconcile(*item)
            except ClusterError as error:
                log.debug("%s: %s", item, error)
                after = self._retry_after(item, error)
            except Exception:
                log.exception("the simulated controller %s failed on %s", *item)
                after = LAST_RETRY
            else:
                self._failures.pop(item, None)
            if after is not None:
                self.queue.add(item, after)

    def _reconcile(self, name: str, key: Key) -> float | None:
        result = self._controllers[name].reconcile(key, self._cache, time.time())
        for write in result.writes:
            for resource, changed in self._executor.execute(write):
                self.changed(resource, changed)
        return result.requeue_after

    def _retry_after(self, item: tuple[str, Key], error: ClusterError) -> float:
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        wait = min(FIRST_RETRY * 2.0 ** min(failures, 10), LAST_RETRY)
        return max(wait, error.retry_after or 0.0)

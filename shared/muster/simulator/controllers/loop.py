"""What all simulated controllers share: a queue with timers, and the one worker that asks and writes."""

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
from muster.cluster.port import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.execute import Executor
from muster.simulator.controllers.store import Store, View
from muster.simulator.controllers.writes import Result

log = logging.getLogger(__name__)

FIRST_RETRY = 0.02
LAST_RETRY = 1.0
"""Seconds until a key that failed comes again: doubled each time, from the first to the last."""

Key = tuple[str, ...]


@dataclass(frozen=True)
class Wake:
    """A key that an event concerns, and how many seconds later it is soon enough to look."""

    key: Key
    after: float = 0.0


class Controller(Protocol):
    """One simulated controller: level-based, so that the reason for a call never matters."""

    @property
    def name(self) -> str:
        """What the controller is called when it is switched on or off."""
        ...

    @property
    def watches(self) -> tuple[Resource, ...]:
        """The kinds it reads."""
        ...

    def wakes(self, resource: Resource, item: Object, /) -> Iterable[Wake]:
        """What to look at because this object was added, changed or deleted."""
        ...

    def reconcile(self, key: Key, view: View, now: float, /) -> Result:
        """The writes that bring the world nearer to what it should be; `now` in seconds since the epoch."""
        ...


class Queue:
    """Keys that wait for their time; one key waits once, at the earliest time asked for."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, tuple[str, Key]]] = []
        self._due: dict[tuple[str, Key], float] = {}
        self._order = itertools.count()
        self._closed = False

    def add(self, item: tuple[str, Key], after: float = 0.0) -> None:
        """Ask for a key, `after` seconds from now or earlier."""
        due = self._clock() + after
        with self._changed:
            if due >= self._due.get(item, float("inf")):
                return
            self._due[item] = due
            heapq.heappush(self._heap, (due, next(self._order), item))
            self._changed.notify()

    def take(self) -> tuple[str, Key] | None:
        """The next key that is due, as soon as one is; None once the queue is closed."""
        with self._changed:
            while not self._closed:
                wait: float | None = None
                if self._heap:
                    due, _, item = self._heap[0]
                    wait = due - self._clock()
                    if self._due.get(item) != due:
                        heapq.heappop(self._heap)  # asked for again at an earlier time, and taken then
                        continue
                    if wait <= 0:
                        heapq.heappop(self._heap)
                        del self._due[item]
                        return item
                self._changed.wait(wait)
        return None

    def close(self) -> None:
        """Let the worker end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class Worker:
    """The one thread that asks the controllers and carries out what they answer."""

    def __init__(self, controllers: Iterable[Controller], store: Store, executor: Executor) -> None:
        self._controllers = {controller.name: controller for controller in controllers}
        self._store = store
        self._executor = executor
        self._failures: dict[tuple[str, Key], int] = {}
        self.queue = Queue()
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def start(self) -> None:
        """Begin; call when the cache is filled."""
        self._thread.start()

    def stop(self) -> None:
        """End after the write that is under way."""
        self.queue.close()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)

    def changed(self, resource: Resource, item: Object) -> None:
        """Wake every controller that looks at this kind."""
        for controller in self._controllers.values():
            if resource in controller.watches:
                for wake in controller.wakes(resource, item):
                    self.queue.add((controller.name, wake.key), wake.after)

    def _run(self) -> None:
        while (item := self.queue.take()) is not None:
            try:
                again = self._once(*item)
            except ClusterError as error:
                log.debug("%s: %s", item, error)
                again = self._retry_after(item, error)
            except Exception:
                log.exception("the simulated controller %s failed on %s", *item)
                again = LAST_RETRY
            else:
                self._failures.pop(item, None)
            if again is not None:
                self.queue.add(item, again)

    def _once(self, name: str, key: Key) -> float | None:
        result = self._controllers[name].reconcile(key, self._store, time.time())
        for write in result.writes:
            for resource, changed in self._executor.execute(write):
                self.changed(resource, changed)
        return result.again

    def _retry_after(self, item: tuple[str, Key], error: ClusterError) -> float:
        times = self._failures.get(item, 0)
        self._failures[item] = times + 1
        wait = min(FIRST_RETRY * 2.0 ** min(times, 10), LAST_RETRY)
        return max(wait, error.retry_after or 0.0)

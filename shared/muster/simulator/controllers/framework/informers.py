"""Informers: one thread per kind that lists and watches and keeps the cache up to date."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.framework.cache import Cache

log = logging.getLogger(__name__)

WATCH_SECONDS = 20
"""Timeout of one watch request; also how long a thread may outlive `stop`."""
RETRY_SECONDS = 0.2
UNSERVED_SECONDS = 1.0
"""Interval between lists of a kind that is not served, such as one behind a feature gate."""

Handler = Callable[[Resource, Object], None]


class Informers:
    """Keeps a cache in sync with an API server and calls a handler on every change."""

    def __init__(
        self, connect: Callable[[], Client], cache: Cache, kinds: Iterable[Resource], handler: Handler
    ) -> None:
        self._connect = connect
        self._cache = cache
        self._handler = handler
        self._stopped = threading.Event()
        self._synced = {kind: threading.Event() for kind in kinds}
        self._threads = [
            threading.Thread(target=self._run, args=(kind,), name=f"informer-{kind.plural}", daemon=True)
            for kind in self._synced
        ]

    def start(self, timeout: float = 10.0) -> None:
        """Start and wait until every kind has been listed."""
        for thread in self._threads:
            thread.start()
        for kind, synced in self._synced.items():
            if not synced.wait(timeout):
                self.stop()
                raise errors.Unavailable(f"no list of {kind.plural} within {timeout:g} s")

    def stop(self) -> None:
        """Stop taking changes; each thread ends with its watch, within `WATCH_SECONDS`."""
        self._stopped.set()

    def _run(self, kind: Resource) -> None:
        client = self._connect()
        while not self._stopped.is_set():
            try:
                self._list_and_watch(client, kind)
            except errors.Expired:
                continue
            except errors.Gone:
                self._synced[kind].set()
                self._stopped.wait(UNSERVED_SECONDS)
            except errors.ClusterError as error:
                log.debug("watching %s: %s", kind.plural, error)
                self._stopped.wait(RETRY_SECONDS)
            except Exception:
                if not self._stopped.is_set():
                    log.exception("watching %s failed", kind.plural)
                self._stopped.wait(RETRY_SECONDS)

    def _list_and_watch(self, client: Client, kind: Resource) -> None:
        items, version = client.list_with_version(kind)
        for item in self._cache.replace(kind, items, version):
            self._handler(kind, item)
        self._synced[kind].set()
        while not self._stopped.is_set():
            for change, item in client.watch(kind, resource_version=version, timeout_seconds=WATCH_SECONDS):
                if self._stopped.is_set():
                    return
                version = item["metadata"]["resourceVersion"]
                self._handle(kind, change, item)

    def _handle(self, kind: Resource, change: str, item: Object) -> None:
        if change == "DELETED":
            changed = self._cache.remove(kind, item)
        elif change in ("ADDED", "MODIFIED"):
            changed = self._cache.put(kind, item)
        else:
            return  # BOOKMARK
        if changed:
            self._handler(kind, item)

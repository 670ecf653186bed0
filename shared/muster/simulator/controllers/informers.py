"""Informers: one thread per kind that lists, watches and keeps the cache up to date."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from muster.cluster import errors
from muster.cluster.client import Client
from muster.cluster.port import Object
from muster.objects.resources import Resource
from muster.simulator.controllers.store import Store

log = logging.getLogger(__name__)

WATCH_SECONDS = 20
"""Length of one watch. Short, so that a thread whose stack was stopped ends soon by itself."""
RETRY_SECONDS = 0.2
UNSERVED_SECONDS = 1.0
"""How often to ask again for a kind whose API is not served, such as one behind a feature gate."""

Handler = Callable[[Resource, Object], None]


class Informers:
    """Keeps a store in step with an API server and tells a handler about every change it took.

    Args:
        connect: makes a client. Each kind gets one of its own: a watch holds its connection, and a shared
            pool would run short.
        store: what is kept in step.
        kinds: what is watched.
        handler: told of each change that the store took.
    """

    def __init__(
        self, connect: Callable[[], Client], store: Store, kinds: Iterable[Resource], handler: Handler
    ) -> None:
        self._connect = connect
        self._store = store
        self._handler = handler
        self._stopped = threading.Event()
        self._synced = {kind: threading.Event() for kind in kinds}
        self._threads = [
            threading.Thread(target=self._run, args=(kind,), name=f"informer-{kind.plural}", daemon=True)
            for kind in self._synced
        ]

    def start(self, timeout: float = 10.0) -> None:
        """Start and wait until every kind was listed once.

        Raises:
            Unavailable: the API server did not answer within `timeout` seconds.
        """
        for thread in self._threads:
            thread.start()
        for kind, synced in self._synced.items():
            if not synced.wait(timeout):
                self.stop()
                raise errors.Unavailable(f"no list of {kind.plural} within {timeout:g} s")

    def stop(self) -> None:
        """Take no more changes. A thread inside a watch ends with it, within `WATCH_SECONDS`."""
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
        for item in self._store.replace(kind, items, version):
            self._handler(kind, item)
        self._synced[kind].set()
        while not self._stopped.is_set():
            for change, item in client.watch(kind, resource_version=version, timeout_seconds=WATCH_SECONDS):
                if self._stopped.is_set():
                    return
                version = item["metadata"]["resourceVersion"]
                self._take(kind, change, item)

    def _take(self, kind: Resource, change: str, item: Object) -> None:
        if change == "DELETED":
            taken = self._store.remove(kind, item)
        elif change in ("ADDED", "MODIFIED"):
            taken = self._store.put(kind, item)
        else:
            return  # a bookmark
        if taken:
            self._handler(kind, item)

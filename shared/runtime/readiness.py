"""Whether a function can do its work: the API server answers, and the scheduling API is switched on."""

from __future__ import annotations

import time
from threading import Lock, Thread

from shared.cluster.errors import ClusterError
from shared.cluster.port import RawCluster
from shared.objects.versions import GROUP, HOW_TO_SWITCH_ON, choose

FRESH_SECONDS = 5.0

State = tuple[bool, str]
"""Whether it is ready, and in words."""


class Readiness:
    """Asks the API server, and remembers the answer for those who cannot wait."""

    def __init__(self, cluster: RawCluster) -> None:
        self._cluster = cluster
        self._asking = Lock()
        self._known: State = (False, "the API server has not answered yet")
        self._asked_at = float("-inf")

    def ask(self) -> State:
        """The state now; takes as long as the API server does.

        A cluster without the scheduling API is ready all the same: pods that were stamped before the API was
        switched off wait for their gates to be lifted, and a function that is not ready is sent no events.
        """
        try:
            api = choose(self._cluster.served_versions(GROUP))
        except ClusterError as error:
            self._known = (False, f"{type(error).__name__}: {error.message}")
        else:
            self._known = (
                True,
                "OK" if api.served else f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs",
            )
        self._asked_at = time.monotonic()
        return self._known

    def last_known(self) -> State:
        """The last answer, at once; an old one is renewed in the background.

        For func's middleware, which calls `ready()` on the event loop: waiting there for an API server
        that is away would hold up every other request, liveness probes included.
        """
        if time.monotonic() - self._asked_at > FRESH_SECONDS and self._asking.acquire(blocking=False):
            Thread(target=self._ask_in_background, name="readiness", daemon=True).start()
        return self._known

    def _ask_in_background(self) -> None:
        try:
            self.ask()
        finally:
            self._asking.release()

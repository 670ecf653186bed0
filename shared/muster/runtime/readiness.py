"""Whether a function can do its work, and what of it the cluster does not let it do."""

from __future__ import annotations

import time
from threading import Lock, Thread
from typing import Self

from muster.cluster.errors import ClusterError, Forbidden, Gone
from muster.cluster.interface import RawCluster
from muster.cluster.permissions import Permissions, lacking
from muster.objects.versions import GROUP, HOW_TO_SWITCH_ON, choose
from muster.policy.reasons import Reason
from muster.runtime.logs import LOGGER
from muster.runtime.receiver import Receiver

FRESH_SECONDS = 5.0

State = tuple[bool, str]
"""Whether it is ready, and in words."""


class Readiness:
    """Asks the API server, and remembers the answer for those who cannot wait.

    A function that is not ready is sent no events, and then lifts no gate. So it is ready whenever the API
    server answers. What it cannot do meanwhile, for want of an API or of a permission, it says: an event that
    needs a missing permission is answered with 503 and comes again, all others are worked on.

    Args:
        cluster: which API server.
        function: its name, for the log.
        manager: its field manager, as for every create.
        permissions: what it must be allowed. Each is asked for until it is granted, as a rule once, at start.
        namespace: where; empty for all namespaces.
    """

    def __init__(
        self,
        cluster: RawCluster,
        *,
        function: str = "",
        manager: str = "muster",
        permissions: Permissions = frozenset(),
        namespace: str = "",
    ) -> None:
        self._cluster = cluster
        self._function = function
        self._manager = manager
        self._namespace = namespace
        self._not_granted = permissions
        self._told = ""
        self._asking = Lock()
        self._known: State = (False, "the API server has not answered yet")
        self._asked_at = float("-inf")

    @classmethod
    def of(cls, receiver: Receiver, cluster: RawCluster) -> Self:
        """That of a function."""
        return cls(
            cluster,
            function=receiver.name,
            manager=receiver.manager,
            permissions=receiver.permissions,
            namespace=receiver.namespace,
        )

    def ask(self) -> State:
        """The state now; takes as long as the API server does."""
        try:
            troubles = [self._not_served(), self._not_allowed()]
        except ClusterError as error:
            self._known = (False, f"{type(error).__name__}: {error.message}")
        else:
            self._known = (True, "; ".join(filter(None, troubles)) or "OK")
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

    def _not_served(self) -> str:
        """What to switch on, where the scheduling API is off; nothing where it is on."""
        if choose(self._cluster.served_versions(GROUP)).served:
            return ""
        return f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs"

    def _not_allowed(self) -> str:
        """Which permissions are missing; nothing where all are granted. A change goes to the log."""
        try:
            self._not_granted = lacking(self._cluster, self._not_granted, self._namespace, self._manager)
        except (Forbidden, Gone) as error:
            said = f"permissions are not known: {error.message}"
        else:
            missing = sorted(map(str, self._not_granted))
            where = f"in namespace {self._namespace}" if self._namespace else "in all namespaces"
            said = f"may not {', '.join(missing)} {where}: kubectl apply -k eventing/rbac" if missing else ""
        if said != self._told:
            reason = Reason.PERMISSION_MISSING if said else Reason.PERMISSIONS_GRANTED
            fields = {"step": self._function, "reason": reason}
            log = LOGGER.error if said else LOGGER.info
            log("%s", said or "all permissions are granted", extra={"fields": fields})
            self._told = said
        return said

"""Readiness of a function, with the APIs and permissions that it lacks."""

from __future__ import annotations

import time
from threading import Lock, Thread

from muster.cluster.errors import ClusterError
from muster.cluster.permissions import missing_permissions
from muster.objects.versions import GROUP, HOW_TO_SWITCH_ON, choose
from muster.policy.reasons import Reason
from muster.runtime.http.app import Receiver, State
from muster.runtime.telemetry.logs import LOGGER

FRESH_SECONDS = 5.0

_NOT_SERVED = f"{HOW_TO_SWITCH_ON}; until then jobs with group labels run as plain jobs"


class Readiness:
    """Checks the API server, and keeps the result for callers that cannot wait.

    A function that is not ready gets no events, and so removes no gates. Therefore it is ready as soon as the
    API server answers; missing APIs and permissions are in the message only.
    """

    def __init__(self, function: Receiver) -> None:
        self._function, self._not_granted = function, function.permissions
        self._logged_message = ""
        self._asking = Lock()
        self._known: State = (False, "the API server has not answered yet")
        self._asked_at = float("-inf")

    def ask(self) -> State:
        """Check now; takes as long as the API server does."""
        try:
            served = choose(self._function.cluster.served_versions(GROUP)).served
            problems = ["" if served else _NOT_SERVED, self._not_allowed()]
        except ClusterError as error:
            self._known = (False, f"{type(error).__name__}: {error.message}")
        else:
            self._known = (True, "; ".join(filter(None, problems)) or "OK")
        self._asked_at = time.monotonic()
        return self._known

    def last_known(self) -> State:
        """Return the last state, at once; a new check begins in the background if it is older than 5 s."""
        is_old = time.monotonic() - self._asked_at > FRESH_SECONDS
        if is_old and self._asking.acquire(blocking=False):
            Thread(target=self._ask_and_release, name="readiness", daemon=True).start()
        return self._known

    def _ask_and_release(self) -> None:
        try:
            self.ask()
        finally:
            self._asking.release()

    def _not_allowed(self) -> str:
        function, namespace = self._function, self._function.namespace
        of = function.cluster, self._not_granted, namespace, function.manager
        self._not_granted = missing_permissions(*of)
        missing = ", ".join(sorted(map(str, self._not_granted)))
        where = f"in namespace {namespace}" if namespace else "in all namespaces"
        message = f"may not {missing} {where}: apply the roles of its version" if missing else ""
        if message != self._logged_message:
            reason = Reason.PERMISSION_MISSING if message else Reason.PERMISSIONS_GRANTED
            fields = {"step": function.name, "reason": reason}
            log = LOGGER.error if message else LOGGER.info
            log("%s", message or "all permissions are granted", extra={"fields": fields})
            self._logged_message = message
        return message

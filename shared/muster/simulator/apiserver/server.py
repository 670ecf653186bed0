"""`serve`: an embedded API server in a process of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable

from muster.simulator.apiserver.api import ApiServer

_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}


def serve(server: ApiServer, announce: Callable[[str], object]) -> None:
    """Run a server until SIGINT or SIGTERM."""
    # A shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Blocked before any thread starts, so that the signal stays pending until sigwait below. A handler that
    # sets an Event could deadlock: it may run while the main thread holds the Event's lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    with server:
        announce(server.url)
        signal.sigwait(_STOP_SIGNALS)

"""The embedded API server as a process of its own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from muster.simulator.apiserver.schemas import resource_definitions
from muster.simulator.apiserver.server import ApiServer

_ENDS = {signal.SIGINT, signal.SIGTERM}


def serve(port: int, release: str, kubeconfig: Path | None, announce: Callable[[str], object]) -> None:
    """Serve, with JobSet's and the Trainer's kinds, until SIGINT or SIGTERM.

    Args:
        port: 0 takes any free one.
        release: `1.37` or `1.36`.
        kubeconfig: where to write one for kubectl; None for nowhere.
        announce: is told the URL once the server answers.

    Raises:
        OSError: the port is taken.
    """
    # A shell starts what runs in its background with SIGINT ignored, and nobody can wait for that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Blocked before any thread starts, so that a signal waits for sigwait below whenever it comes; a handler
    # that sets an Event would wait for ever if it came while the Event's own lock is taken.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    with ApiServer(port=port, release=release) as server:
        server.load(resource_definitions())
        if kubeconfig is not None:
            kubeconfig.write_text(server.kubeconfig())
        announce(server.url)
        signal.sigwait(_ENDS)

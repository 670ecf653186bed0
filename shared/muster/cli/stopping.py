"""Ctrl-C and SIGTERM as an event that a command waits for, instead of an error in the middle of anything."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """An Event that is set by the first signal; further ones change nothing until the block is left.

    Enter it before any thread is started, since threads begin with the signal mask of their maker.
    """
    stop, leaving = threading.Event(), threading.Event()

    def wait() -> None:
        while not leaving.is_set():
            signal.sigwait(_ENDS)
            stop.set()

    # A shell starts what runs in its background with SIGINT ignored, and nobody can wait for that.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    waiter = threading.Thread(target=wait, name="signals", daemon=True)
    waiter.start()
    try:
        yield stop
    finally:
        leaving.set()
        signal.pthread_kill(waiter.ident or 0, signal.SIGTERM)
        waiter.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)

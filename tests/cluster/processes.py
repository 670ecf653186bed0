"""Starts, watches and stops the processes of a cluster, each by its own process id."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


class NotReady(RuntimeError):
    """A component ended or did not become ready in time; the message ends with the tail of its log."""


_PORTS = range(20000, 30000)
"""Below those from which outgoing connections get theirs, on Linux and macOS alike: while a server is being
started anew, none of its clients that try again and again can be given its port."""


def free_ports(count: int) -> list[int]:
    """Returns distinct loopback ports that nothing listens on.

    All are held open until the last one is known, so that no port is returned twice.
    """
    found: list[int] = []
    with contextlib.ExitStack() as held:
        while len(found) < count:
            listener = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):  # somebody has it
                listener.bind(("127.0.0.1", random.choice(_PORTS)))  # noqa: S311 - no secret
                found.append(listener.getsockname()[1])
    return found


@dataclass(frozen=True)
class Process:
    """One running component: its name, process id and log file."""

    name: str
    pid: int
    log: Path

    def alive(self) -> bool:
        """Tells whether the process still runs; one that nobody collects counts as ended.

        A child's end is what waitpid says: with threads it is a zombie before it has let go of its port.
        """
        with contextlib.suppress(ChildProcessError):
            return not os.waitpid(self.pid, os.WNOHANG)[0]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return not self._is_zombie()

    def stop(self, grace: float = 0.0) -> None:
        """Ends the process: politely when a grace in seconds is given, then at once."""
        if grace:
            self.signal(signal.SIGTERM)
            until(lambda: not self.alive(), grace)
        self.signal(signal.SIGKILL)
        until(lambda: not self.alive(), 10)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal; a process that has ended is no error."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def _is_zombie(self) -> bool:
        # A child of `up` has no parent left in `down`, and where nobody reaps orphans it stays as a zombie.
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] == "Z"

    def tail(self, lines: int = 25) -> str:
        """Returns the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def start(
    name: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Starts a command with its output in ``<folder>/<name>.log``.

    Args:
        name: how the process is called in messages.
        command: program and arguments.
        folder: where the log goes.
        environment: variables added to ours.
    """
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            # Ctrl-C at the terminal is for the fixture, which then stops its processes in order.
            start_new_session=True,
        )
    # From here on the process id is all that is kept: `down` runs in another process than `up`.
    child.returncode = 0
    return Process(name, child.pid, log)


def wait_ready(process: Process, ready: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until ``ready`` answers True.

    Raises:
        NotReady: the process ended, or the seconds passed.
    """
    if not until(lambda: ready() or not process.alive(), seconds):
        raise NotReady(f"{process.name} was not ready after {seconds:.0f} s\n{process.tail()}")
    if not process.alive():
        raise NotReady(f"{process.name} ended while starting\n{process.tail()}")


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Asks again and again until the condition holds; returns whether it did within the seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True

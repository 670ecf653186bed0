"""Starts, watches and stops the processes of a cluster by process id."""

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
from threading import Lock


class NotReady(RuntimeError):
    """A component ended or did not become ready in time; the message ends with the last lines of its log."""


_FIRST_PORT, _PORTS = 20000, 1000
"""All ports are below the ephemeral ports of Linux and macOS, so that no retrying client gets the port of a
server that restarts."""
_MOST_WORKERS = 9


def _ports() -> range:
    """The ports of this worker of pytest-xdist, so that no two workers choose the same at the same time."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
    number = min(int(worker), _MOST_WORKERS) if worker.isdigit() else _MOST_WORKERS
    return range(_FIRST_PORT + number * _PORTS, _FIRST_PORT + (number + 1) * _PORTS)


_LOCK = Lock()
_RETURNED: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nothing listens on, none of them twice until all were returned.

    A component starts to listen up to a second after its port was chosen.
    """
    ports: list[int] = []
    while len(ports) < count:
        with _LOCK:
            if _RETURNED.issuperset(_ports()):
                _RETURNED.clear()
            left = [port for port in _ports() if port not in _RETURNED]
            port = random.choice(left)  # noqa: S311 - no secret
            _RETURNED.add(port)
        with socket.socket() as listener, contextlib.suppress(OSError):  # the port is in use
            listener.bind(("127.0.0.1", port))
            ports.append(port)
    return ports


@dataclass(frozen=True)
class ComponentProcess:
    """A running component: name, process id and log file."""

    name: str
    pid: int
    log: Path

    def alive(self) -> bool:
        """Return whether the process still runs; a zombie does not.

        For a child waitpid decides: a process with threads is a zombie before it has released its port.
        """
        with contextlib.suppress(ChildProcessError):
            return not os.waitpid(self.pid, os.WNOHANG)[0]
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return not self._is_zombie()

    def stop(self, grace: float = 0.0) -> None:
        """Stop the process: by SIGTERM if `grace` (seconds) is given, then by SIGKILL."""
        if grace:
            self.signal(signal.SIGTERM)
            until(lambda: not self.alive(), grace)
        self.signal(signal.SIGKILL)
        until(lambda: not self.alive(), 10)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to those that it started in its session; ignore ended ones."""
        for send in (os.killpg, os.kill):  # a process in the session of its parent has no group of its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(self.pid, number)
                return

    def _is_zombie(self) -> bool:
        # In `down` the parent, `up`, is gone; without an init process that reaps orphans they stay zombies.
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] == "Z"

    def tail(self, lines: int = 25) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def start(
    name: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    *,
    own_session: bool = True,
) -> ComponentProcess:
    """Start a command with its output in ``<folder>/<name>.log``."""
    log = folder / f"{name}.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **(environment or {})},
            # Ctrl-C at the terminal reaches only the fixture, which then stops its processes in order.
            start_new_session=own_session,
        )
    # Only the process id is kept, because `down` runs in another process than `up`.
    child.returncode = 0
    return ComponentProcess(name, child.pid, log)


def wait_ready(process: ComponentProcess, ready: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until ``ready`` returns True."""
    if not until(lambda: ready() or not process.alive(), seconds):
        raise NotReady(f"{process.name} was not ready after {seconds:.0f} s\n{process.tail()}")
    if not process.alive():
        raise NotReady(f"{process.name} ended while starting\n{process.tail()}")


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Poll until the condition holds; return whether it did within the seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True

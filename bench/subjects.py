"""Processes that are measured: how they are started, what they cost, and how events are sent to them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from bench.calls import Call
from bench.control_plane import ControlPlane
from bench.figures import ROOT
from bench.gangs import Event
from muster.data import FUNCTIONS

PEERS = ROOT / "bench" / "peers"
PATIENCE = 30.0
"""Seconds that a process may take to listen, or to answer an event."""


class FailedError(Exception):
    """A process that is measured did not do what it should; the message has the end of its log."""


@dataclass(frozen=True)
class Subject:
    """A running process.

    Attributes:
        process: the process.
        log: the file with its output.
    """

    process: subprocess.Popen[bytes]
    log: Path

    def cpu(self) -> float:
        """Return the seconds of CPU, user and system, that all its threads have used."""
        # The clock of another process (clock_getcpuclockid(3)), in nanoseconds; /proc counts in 10 ms.
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def resident(self) -> float:
        """Return its resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kibibytes,) = re.findall(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
        return int(kibibytes) / 1024

    def url(self) -> str:
        """Wait until it has printed its address, and return that."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            if found := re.search(r"^(?:[^{\n].* )?(http://\S+)$", self.log.read_text(), re.MULTILINE):
                return found[1]
            time.sleep(0.01)
        raise self.failed("does not listen")

    def failed(self, why: str) -> FailedError:
        """Return the error that says why, with the end of the log."""
        return FailedError(f"{self.log.stem}: {why}\n{self.log.read_text()[-2000:]}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it."""
        self.process.send_signal(number)


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str], folder: Path = ROOT
) -> Iterator[Subject]:
    """Run a process for the length of a block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Subject(process, log)
    finally:
        process.kill()
        process.wait()


def function(step: str, kubeconfig: Path) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of a function, as `make e2e` starts it."""
    code = FUNCTIONS / step / "function" / "step.py"
    command = [sys.executable, "-m", "muster.runtime.serve", str(code), "--port", "0"]
    return command, {"KUBECONFIG": str(kubeconfig), "MUSTER_API_SERVER": ""}


def floor(
    plane: ControlPlane, step: str, calls: Mapping[str, Sequence[Call]]
) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of the floor that makes these calls of each event, by its id."""
    file = plane.new_file(f"{step}-calls.json")
    file.write_text(
        json.dumps({event: [astuple(call) for call in of_event] for event, of_event in calls.items()})
    )
    environment = {
        "API_SERVER": plane.cluster.api.server,
        "API_TOKEN": plane.token(step.replace("_", "-")),
        "API_CA": str(plane.cluster.credentials.certificate),
    }
    return [sys.executable, str(PEERS / "floor.py"), str(file)], environment


class Sender:
    """Sends events to a process and expects one status of all answers.

    Args:
        url: where it listens.
        status: of an answer.
    """

    def __init__(self, url: str, status: int) -> None:
        self._pool = urllib3.connection_from_url(url, maxsize=8, retries=False, timeout=PATIENCE)
        self._path = urlsplit(url).path or "/"
        self._status = status

    def send(self, event: Event) -> None:
        """Send an event and wait for the answer.

        Raises:
            FailedError: it has another status than expected.
        """
        answer = self._pool.request("POST", self._path, body=event.body, headers=dict(event.headers))
        if answer.status != self._status:
            raise FailedError(f"{event.headers['Ce-Subject']}: {answer.status} {answer.data.decode()}")

    def rate(self, events: Sequence[Event], at_once: int = 1) -> float:
        """Send events, so many at once; return how many were answered per second."""
        began = time.perf_counter()
        if at_once == 1:
            for event in events:
                self.send(event)
        else:
            with ThreadPoolExecutor(at_once) as pool:
                list(pool.map(self.send, events))
        return len(events) / (time.perf_counter() - began)


def cpu_per_event(subject: Subject, count: int, act: Callable[[], object]) -> float:
    """Return the milliseconds of CPU that a process spends for each of `count` events."""
    before = subject.cpu()
    act()
    return (subject.cpu() - before) / count * 1000

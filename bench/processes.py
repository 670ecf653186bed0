"""Processes that are measured: how they are started, what they cost, and how events are sent to them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3

from bench.figures import ROOT
from bench.gangs import Event

PATIENCE = 30.0
"""Seconds that a process may take to listen, or to answer an event."""


class FailedError(Exception):
    """What is measured did not do what it should."""


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU, user and system, that all threads of a process have used."""
    # The clock of another process (clock_getcpuclockid(3)), in nanoseconds; /proc counts in 10 ms.
    return time.clock_gettime((~pid << 3) | 2)


def memory_of(pid: int, field: str = "VmHWM") -> float:
    """Return memory of a process in MiB, by default the most that was resident so far."""
    (kibibytes,) = re.findall(rf"^{field}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(kibibytes) / 1024


@dataclass(frozen=True)
class Subject:
    """A running process, and the file with its output."""

    process: subprocess.Popen[bytes]
    log: Path

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


class Sender:
    """Sends events to a process."""

    def __init__(self, url: str) -> None:
        self._pool = urllib3.connection_from_url(url, maxsize=8, retries=False, timeout=PATIENCE)

    def send(self, event: Event) -> None:
        """Send an event and wait for the answer.

        Raises:
            FailedError: it is no success.
        """
        answer = self._pool.request("POST", "/", body=event.body, headers=dict(event.headers))
        if answer.status // 100 != 2:
            raise FailedError(f"{event.headers['Ce-Subject']}: {answer.status} {answer.data.decode()}")

    def rate(self, events: Sequence[Event], at_once: int = 1) -> float:
        """Send events, so many at once; return how many were answered per second."""
        began = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self.send, events))
        return len(events) / (time.perf_counter() - began)

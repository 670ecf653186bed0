"""The command `muster` as a process of its own."""

from __future__ import annotations

import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MUSTER = [sys.executable, "-c", "from muster.cli import main; main()"]
PATIENCE = 30.0
"""Seconds to wait for a line; all come within three on an idle machine."""


class Process:
    """A running `muster`, and the lines it printed.

    SIGINT is ignored as it starts, as in the background of a shell; it has to end at one all the same.
    """

    def __init__(self, *arguments: str) -> None:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._process = subprocess.Popen(
                [*MUSTER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
        finally:
            signal.signal(signal.SIGINT, handler)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.printed: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def line(self, part: str) -> str:
        """The next line that has this in it, waited for."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.printed.append(line)
            if part in line:
                return line
        raise AssertionError(f"no line has {part!r} in it:\n" + "\n".join(self.printed))

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal; the exit status."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Until it ends by itself; the exit status."""
        return self._process.wait(timeout=PATIENCE)

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    """`muster` with these arguments, gone at the end in any case."""
    process = Process(*arguments)
    try:
        yield process
    finally:
        process.kill()


def url_in(line: str) -> str:
    """The first URL in a line, without the punctuation after it."""
    found = re.search(r"https?://\S+?(?=[.,:;)]?(?:\s|$))", line)
    assert found, line
    return found[0]


def muster(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`muster` until it ends."""
    return subprocess.run(
        [*MUSTER, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )

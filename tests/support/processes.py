"""The command `muster` as a separate process."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MUSTER = [sys.executable, "-c", "from muster.cli import main; main()"]
PATIENCE = 50.0
"""Seconds to wait for a line; an idle machine prints each within three."""


class MusterProcess:
    """A running `muster` and the lines that it printed.

    It starts with SIGINT ignored, like a background process of a shell, and must end at SIGINT nevertheless.
    """

    def __init__(self, *arguments: str) -> None:
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._process = subprocess.Popen(
                [*MUSTER, *arguments],
                env=os.environ | {"PYTHONUTF8": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        finally:
            signal.signal(signal.SIGINT, handler)
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.printed: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def line(self, part: str) -> str:
        """Wait for the next line that contains `part`, and return it."""
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.printed.append(line)
            if part in line:
                return line
        raise AssertionError(f"no line has {part!r} in it:\n" + "\n".join(self.printed))

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send a signal, wait for the end and return the exit status."""
        self._process.send_signal(number)
        return self._process.wait(timeout=PATIENCE)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
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
def running(*arguments: str) -> Iterator[MusterProcess]:
    """Run `muster` with these arguments for the length of a block."""
    process = MusterProcess(*arguments)
    try:
        yield process
    finally:
        process.kill()

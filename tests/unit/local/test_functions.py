"""Functions as processes of the local stack."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from muster.local import functions
from muster.local.functions import AsProcesses
from muster.runtime.config import Settings


class _Process:
    """A process that listens, or whose start is interrupted by a signal."""

    def __init__(self, first_line: str | KeyboardInterrupt) -> None:
        self._first_line = first_line
        self.stdout: Any = self
        self.calls: list[str] = []

    def readline(self) -> str:
        if isinstance(self._first_line, KeyboardInterrupt):
            raise self._first_line
        return self._first_line

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def terminate(self) -> None:
        self.calls.append("terminate")

    def wait(self, timeout: float) -> None:
        del timeout
        self.calls.append("wait")

    def close(self) -> None:
        self.calls.append("close")


@pytest.mark.parametrize("fails", ["start", "first line"])
def test_a_signal_during_the_start_ends_all_processes(fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM reaches the command alone; they would go on with the credentials of a cluster."""
    started = [_Process("create_workload listens on http://0.0.0.0:8080"), _Process(KeyboardInterrupt())]

    def start(*_: object) -> Iterator[_Process]:
        yield from started[: 1 if fails == "start" else 2]
        raise KeyboardInterrupt

    processes = start()
    monkeypatch.setattr(functions, "_start", lambda *_: next(processes))
    with pytest.raises(KeyboardInterrupt):
        AsProcesses(["create-workload", "patch-pods"], Settings(), lambda _: None)
    for process in started[: 1 if fails == "start" else 2]:
        assert process.calls == ["terminate", "wait", "close"]


IGNORES_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("patch_pods listens on http://0.0.0.0:8080", flush=True)
time.sleep(60)
"""


def test_a_function_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of one's own may ignore SIGTERM."""
    command = [sys.executable, "-c", IGNORES_SIGTERM]
    monkeypatch.setattr(
        functions, "_start", lambda *_: subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    )
    monkeypatch.setattr(functions, "STOP_SECONDS", 0.1)
    running = AsProcesses(["patch-pods"], Settings(), lambda _: None)
    running.stop()
    assert [process.poll() for process in running._processes.values()] == [-9]

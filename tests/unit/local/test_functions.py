"""Functions as processes of the local stack."""

from __future__ import annotations

import subprocess
import sys

import pytest

from muster.local import functions
from muster.local.functions import AsProcesses, FunctionDownError
from muster.runtime.config import Settings

LISTENS = "print('patch_pods listens on http://0.0.0.0:8080', flush=True); import time; time.sleep(60)"
IGNORES_SIGTERM = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {LISTENS}"


def started(*programs: str) -> list[subprocess.Popen[str]]:
    """Start Python programs."""
    return [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        for program in programs
    ]


def test_all_processes_end_if_one_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would go on with the credentials of a cluster."""
    processes = started(LISTENS, "print('no cluster')")
    waiting = iter(processes)
    monkeypatch.setattr(functions, "_start", lambda *_: next(waiting))
    with pytest.raises(FunctionDownError, match="patch-pods: no cluster"):
        AsProcesses(["create-workload", "patch-pods"], Settings(), lambda _: None)
    assert [process.poll() is None for process in processes] == [False, False]


def test_a_function_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of one's own may ignore SIGTERM."""
    (process,) = started(IGNORES_SIGTERM)
    monkeypatch.setattr(functions, "_start", lambda *_: process)
    monkeypatch.setattr(functions, "STOP_SECONDS", 0.1)
    AsProcesses(["patch-pods"], Settings(), lambda _: None).stop()
    assert process.poll() == -9

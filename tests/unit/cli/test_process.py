"""The process of a command: its memory, and what its threads print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from muster.cli import main, process
from tests.unit.cli.conftest import assert_names
from tests.unit.cli.sample import a_job


@pytest.fixture(autouse=True)
def _hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hooks for errors that nobody catches are those of pytest after each test."""
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)


def _lint(path: Path, limit: str) -> subprocess.CompletedProcess[str]:
    """Run `muster lint FILE` in a process of its own with a limit of memory."""
    return subprocess.run(
        [sys.executable, "-m", "muster", "lint", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, process.MEMORY: limit},
    )


def test_an_object_that_cannot_be_deleted_for_memory_prints_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The line of the command is the only one: 4 of 60 runs of the test below printed a second."""
    process.run(lambda: sys.unraisablehook(SimpleNamespace(exc_value=MemoryError())), ["record"])
    assert capsys.readouterr().err == ""


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["200000000", "0"])
def test_a_command_within_its_memory_works(tmp_path: Path, limit: str) -> None:
    """Also without any limit."""
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(a_job()))
    assert _lint(path, limit).returncode == 0


@pytest.mark.thorough
def test_a_command_that_needs_more_memory_ends_in_one_line(tmp_path: Path) -> None:
    """It neither takes the memory of others nor prints a trace."""
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [a_job()] * 20_000}))
    ran = _lint(path, "80000000")
    assert (ran.returncode, ran.stdout) == (1, "")
    (line,) = ran.stderr.splitlines()
    assert_names(line, process.MEMORY)


@pytest.mark.parametrize("at", ["muster.cli.lint.lint", "muster.cli.process.signs_of_life"])
def test_no_room_for_a_thread_is_no_bug(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wherever Python has a RuntimeError for it."""

    def start(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setenv(process.MEMORY, "0")
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(a_job()))
    monkeypatch.setattr(at, start)
    with pytest.raises(SystemExit) as ended:
        process.run(lambda: main(["lint", str(path)]), ["lint"])
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert_names(line, "thread")


RECORDING = """
import sys
from pathlib import Path
from muster.cli import main, process
process._memory = lambda: 2**40 if Path(sys.argv[2]).exists() else 0
process.run(lambda: main(sys.argv[1:]), sys.argv[1:])
"""

STUBBORN = """
import signal, time
from muster.cli import process
process._memory, process._STOP_SECONDS = lambda: 2**40, 0.2
signals = []
signal.signal(signal.SIGINT, lambda *_: signals.append(1))
process.run(lambda: time.sleep(60), ["status"])
"""


IGNORED = """
import signal, time
from muster.cli import process
signal.signal(signal.SIGINT, signal.SIG_IGN)
process._memory = lambda: 2**40
process.run(lambda: time.sleep(60), ["status"])
"""


def _program(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, for which its signals are."""
    command = [sys.executable, "-c", text, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)


@pytest.mark.thorough
def test_a_recording_is_whole_when_it_needs_more_memory(tmp_path: Path) -> None:
    """The command stops while it records, as after Ctrl-C, and exits with 1."""
    ran = _program(RECORDING, "record", str(tmp_path / "e.jsonl"), "--listen", "127.0.0.1:0")
    assert ran.returncode == 1
    assert "0 events in" in ran.stdout
    assert process.MEMORY in ran.stderr
    assert (tmp_path / "e.jsonl").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("program", [STUBBORN, IGNORED])
def test_a_command_that_does_not_stop_is_ended(program: str) -> None:
    """After some signals, of which each may end what it reads; a shell has `muster status &` ignore them."""
    began = time.monotonic()
    ran = _program(program)
    assert ran.returncode == 1
    assert process.MEMORY in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert time.monotonic() - began < process._STOP_SECONDS


@pytest.mark.parametrize("limit", ["1Gi", "-1", "", "٣", "9" * 5000, "1000"])
def test_a_limit_that_is_no_number_is_named(tmp_path: Path, limit: str) -> None:
    """Exit status 2, as for all bad input."""
    ran = _lint(tmp_path, limit)
    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert_names(line, process.MEMORY)


@pytest.mark.parametrize(
    ("error", "names"),
    [
        pytest.param(
            ZeroDivisionError("division\n\x1b[31mby zero"),
            ["ZeroDivisionError", "test_process.py", r"\x1b"],
            id="a bug, with control characters of a cluster's object",
        ),
        pytest.param(MemoryError(), [process.MEMORY], id="too little memory"),
    ],
)
def test_an_error_of_a_thread_is_one_line(
    error: Exception, names: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one of the command itself."""
    monkeypatch.delenv("MUSTER_TRACEBACK")

    def fail() -> None:
        raise error

    def command() -> None:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()

    process.run(command, ["record"])
    (line,) = capsys.readouterr().err.splitlines()
    assert_names(line, *names)

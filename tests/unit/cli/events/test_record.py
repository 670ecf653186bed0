"""`muster record` refuses bad options before it begins, in one line, and writes no file."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from muster.cli import record
from muster.cli.output import CommandError
from muster.cluster.errors import Unavailable
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.objects import yaml_files
from muster.objects.resources import PODS
from muster.replay.files import AppendedFile
from muster.replay.recording.events import EventRecorder
from tests.unit.cli.conftest import Filed, Muster, assert_names, noting, without_folder


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that is taken, and where no process answers."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        yield door.getsockname()[1]


@pytest.mark.parametrize(
    ("name", "arguments", "names"),
    [
        pytest.param(
            "events.json",
            ["--listen", "127.0.0.1:0"],
            ["events.json", ".jsonl", ".jsonl.gz"],
            id="a file of another kind",
        ),
        pytest.param(
            "events.jsonl",
            ["--listen", "8080"],
            ["--listen", "'8080'", "HOST:PORT"],
            id="a port without a colon",
        ),
        pytest.param(
            "events.jsonl",
            ["--listen", "127.0.0.1:http"],
            ["--listen", "'127.0.0.1:http'", "HOST:PORT"],
            id="a port that is no number",
        ),
        pytest.param(
            "events.jsonl",
            ["--listen", "0.0.0.0:8080"],
            ["--listen", "--beyond-this-machine"],
            id="an address that others reach",
        ),
        pytest.param(
            "events.jsonl",
            ["--kubeconfig", "nowhere"],
            ["nowhere"],
            id="no cluster",
        ),
        pytest.param(
            "missing/events.jsonl",
            ["--listen", "127.0.0.1:0"],
            ["missing/events.jsonl"],
            id="a folder that is not there",
        ),
    ],
)
def test_bad_record_options_are_refused(
    muster: Muster, tmp_path: Path, name: str, arguments: list[str], names: list[str]
) -> None:
    """Exit status 2, and no file."""
    result = muster("record", str(tmp_path / name), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, *names)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(muster: Muster, filed: Filed, tmp_path: Path) -> None:
    """A recording is not made twice by mistake."""
    path = filed("events.jsonl", "kept\n")
    result = muster("record", path, "--listen", "127.0.0.1:0", "--for", "0.1")
    assert result.exit_code == 2
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, "events.jsonl", "--overwrite")
    assert Path(path).read_text() == "kept\n"
    assert muster("record", path, "--listen", "127.0.0.1:0", "--for", "0.1", "--overwrite").exit_code == 0
    assert Path(path).read_text() == ""
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_a_port_in_use_is_reported(muster: Muster, tmp_path: Path, taken_port: int) -> None:
    """In the words of the machine."""
    result = muster("record", str(tmp_path / "e.jsonl"), "--listen", f"127.0.0.1:{taken_port}")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert_names(line, "--listen", f"127.0.0.1:{taken_port}", "Address already in use")
    assert not (tmp_path / "e.jsonl").exists()


def test_a_cluster_that_does_not_answer_is_reported(
    muster: Muster, filed: Filed, tmp_path: Path, taken_port: int
) -> None:
    """Exit status 1: the same command may work later."""
    kubeconfig = filed(
        "kubeconfig",
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{taken_port}"}}],
            "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        },
    )
    result = muster("record", str(tmp_path / "e.jsonl"), "--kubeconfig", kubeconfig)
    assert result.exit_code == 1
    assert_names(result.stderr, f"http://127.0.0.1:{taken_port}", "Unavailable")
    assert not (tmp_path / "e.jsonl").exists()


def test_too_few_events_change_the_exit_status(muster: Muster, tmp_path: Path) -> None:
    """A script waits for so many."""
    path = tmp_path / "e.jsonl"
    result = muster("record", str(path), "--listen", "127.0.0.1:0", "--for", "0.2", "--count", "3")
    assert result.exit_code == 1
    error = result.stderr.splitlines()[-1]
    assert_names(error, "0", "3")
    assert_names(result.stdout, str(path))
    assert path.read_text() == ""


def test_cluster_objects_are_recorded_beside_sent_events(muster: Muster, tmp_path: Path, server: str) -> None:
    """With --listen the cluster is only asked for its objects."""
    objects = tmp_path / "objects.yaml"
    options = ["--listen", "127.0.0.1:0", "--kubeconfig", server, "--objects", str(objects), "--for", "0.2"]
    result = muster("record", str(tmp_path / "e.jsonl"), *options)
    assert result.exit_code == 0, result.output
    line = result.stdout.splitlines()[-1]
    assert_names(line, str(objects), "start", "end")
    assert [moment["moment"] for moment in yaml_files.load_all(objects.read_text())] == ["start", "end"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (objects, tmp_path / "e.jsonl")}
    assert modes == {0o600}, "they contain objects of a cluster"


@pytest.mark.thorough
def test_watches_that_failed_are_counted(
    muster: Muster, tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each begins again, but the recording may lack changes."""

    def watch(*_: Any, **__: Any) -> Any:
        raise Unavailable("no watch")

    monkeypatch.setattr(Client, "watch", watch)
    result = muster("record", str(tmp_path / "e.jsonl"), "--kubeconfig", server, "--for", "0.2")
    assert result.exit_code == 0, result.stderr
    (line,) = [line for line in result.stdout.splitlines() if "watches of jobs;" in line]
    assert_names(line, "interrupted")


def test_the_count_takes_one_line_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A terminal clears no more than one, and a name may be long."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    file = AppendedFile(tmp_path / "events.jsonl")
    recorder = EventRecorder(file)
    recorder.last = "Job add team/" + "\x1b" * 100
    record._show_count(recorder)
    file.close()
    shown = capsys.readouterr().err.removeprefix("\r\x1b[K")
    assert shown == ("0 events, last: Job add team/" + r"\x1b" * 100)[:79]


@pytest.mark.thorough
def test_objects_that_were_left_out_are_counted(muster: Muster, tmp_path: Path, server: str) -> None:
    """Else a replay would miss a pod without a word."""
    metadata = {"name": "large", "namespace": "default", "labels": {"muster.dev/group": "a"}}
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    pod["spec"] = {"containers": [{"name": "main", "image": "a", "args": ["a"] * 20_000}]}
    client_of(server).create(PODS, pod, manager="test")
    options = ["--listen", "127.0.0.1:0", "--kubeconfig", server, "--objects", str(tmp_path / "o.yaml")]
    result = muster("record", str(tmp_path / "e.jsonl"), *options, "--for", "0.2")
    line = result.stdout.splitlines()[-1]
    assert_names(line, "left out: 1", "20000")


def test_the_objects_that_are_read_are_shown(
    muster: Muster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: str
) -> None:
    """A large cluster takes minutes."""
    steps: list[str] = []
    monkeypatch.setattr(record, "step_shown", noting(steps))
    options = ["--listen", "127.0.0.1:0", "--kubeconfig", server, "--objects", str(tmp_path / "o.yaml")]
    muster("record", str(tmp_path / "e.jsonl"), *options, "--for", "0.2")
    assert steps.count("reading objects, Ctrl-C stops it: Pod") == 2


class _Signals:
    """Stands for the signals of a terminal, which would end the process of the tests."""

    def __init__(self) -> None:
        self._events: tuple[threading.Event, ...] = ()

    def __call__(self, *others: threading.Event) -> AbstractContextManager[threading.Event]:
        """Be `stop_signals`."""
        self._events = (threading.Event(), *others)
        return nullcontext(self._events[0])

    def send(self) -> None:
        """Press Ctrl-C."""
        for event in self._events:
            event.set()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("when", "moments"),
    [
        pytest.param([1], [], id="while the first moment is read"),
        pytest.param([0], ["start", "end"], id="while events are recorded"),
        pytest.param([0, 2], ["start"], id="and again while the last moment is read"),
    ],
)
def test_a_signal_ends_the_reading_of_a_moment(
    muster: Muster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    server: str,
    when: list[int],
    moments: list[str],
) -> None:
    """Moments that were read to their end are kept; 0 is between two moments."""
    signals, read = _Signals(), list[str]()

    def show(step: str) -> None:
        if step == "Pod":
            read.append(step)
            if len(read) in when:
                signals.send()

    monkeypatch.setattr(record, "stop_signals", signals)
    monkeypatch.setattr(record, "step_shown", lambda _text: nullcontext(show))
    monkeypatch.setattr(record, "_show_count", lambda _recorder: signals.send())
    objects = tmp_path / "objects.yaml"
    options = ["--listen", "127.0.0.1:0", "--kubeconfig", server, "--objects", str(objects)]
    result = muster("record", str(tmp_path / "e.jsonl"), *options)
    assert result.exit_code == 0, result.output
    assert [moment["moment"] for moment in yaml_files.load_all(objects.read_text())] == moments
    _, *lines = without_folder(result.stdout, tmp_path).splitlines()
    assert_names(lines[0], *moments)


def test_a_device_is_not_deleted_after_an_error(tmp_path: Path) -> None:
    """`--overwrite /dev/null` by root would leave the machine without it."""
    device, empty = tmp_path / "device", tmp_path / "empty"
    os.mkfifo(device)
    empty.touch()
    for path in (device, empty):
        record._delete_if_empty(path, None, OSError(), None)
    assert device.exists()
    assert not empty.exists()


@pytest.mark.parametrize("names", [["fifo.jsonl"], ["e.jsonl", "--objects", "fifo.jsonl"]])
def test_no_fifo_is_written(
    muster: Muster, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    """It would wait for its reader, and no signal ends a recording that has not begun."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo.jsonl")
    result = muster("record", *names, "--overwrite", "--for", "1s", "--kubeconfig", server)
    assert result.exit_code == 2, result.output
    assert_names(result.stderr, "fifo.jsonl")


def test_events_and_objects_are_two_files(muster: Muster, server: str, tmp_path: Path) -> None:
    """Else both would be written into one."""
    path = str(tmp_path / "e.jsonl")
    result = muster("record", path, "--objects", f"{tmp_path}/./e.jsonl", "--kubeconfig", server)
    assert result.exit_code == 2
    assert_names(result.stderr, "--objects")


def test_a_signal_ends_the_wait_for_a_cluster(
    muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The login of an exec plugin may take for ever."""
    blocked: list[set[int]] = []

    def connect(*_: Any) -> None:
        blocked.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        raise CommandError("not connected")

    monkeypatch.setattr(record, "_connect", connect)
    assert muster("record", str(tmp_path / "e.jsonl")).exit_code == 1
    assert blocked == [set()]

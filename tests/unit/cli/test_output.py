"""Progress of slow work in one line of a terminal, and data that are printed in parts."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cli import cluster, output, plan
from muster.cli.check import _shown
from muster.cli.output import (
    echo_data,
    echo_documents,
    echo_items,
    echo_line,
    echo_sections,
    signs_of_life,
    step_shown,
)
from muster.operator.check import Finding, Level
from muster.operator.plan import plan_step
from muster.runtime import steps
from muster.testing.cases import sweep
from tests.support import builders as b
from tests.unit.cli.conftest import Muster, noting
from tests.unit.cli.sample import a_job, a_namespace

CLEARED = "\r\x1b[K"


class _Terminal(io.StringIO):
    """Standard error of a person, who waits for a text."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self._awaited = awaited
        self.seen = threading.Event()

    def isatty(self) -> bool:
        """It is a terminal."""
        return True

    def write(self, text: str) -> int:
        """Keep the text, and note the one that is waited for."""
        count = super().write(text)
        if self._awaited in self.getvalue():
            self.seen.set()
        return count


def _on_a_terminal(monkeypatch: pytest.MonkeyPatch, awaited: str, patience: float = 0.05) -> _Terminal:
    """Make standard error a terminal; a text is waited for, and a step appears after `patience` seconds."""
    monkeypatch.setattr(output, "_PATIENCE_SECONDS", patience)
    terminal = _Terminal(awaited)
    monkeypatch.setattr(sys, "stderr", terminal)
    return terminal


def test_a_step_appears_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second step is needed; the line is cleared for output of the block, and at the end."""
    monkeypatch.setattr(output, "_SHORTEST_SECONDS", 0)
    terminal = _on_a_terminal(monkeypatch, "reading pods ...")
    with step_shown("reading") as show:
        show("pods")
        assert terminal.seen.wait(20)
        show("jobs")
        show("")
        show("podgroups")
    assert terminal.getvalue() == (
        f"reading pods ...{CLEARED}reading jobs ...{CLEARED}reading podgroups ...{CLEARED}"
    )


def test_not_all_of_many_steps_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a stream of 200,000 events each was, which takes a terminal longer than the events."""
    monkeypatch.setattr(output, "_SHORTEST_SECONDS", 3600)
    terminal = _on_a_terminal(monkeypatch, "event 0")
    with step_shown("replaying") as show:
        show("event 0")
        assert terminal.seen.wait(20)
        for number in range(1, 1_000):
            show(f"event {number}")
    assert terminal.getvalue().count("event") < 100


def test_a_silent_command_says_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it does, a person at a terminal sees a line within a minute."""
    monkeypatch.setattr(output, "_TICK_SECONDS", 0.01)
    terminal = _on_a_terminal(monkeypatch, "still working")
    with signs_of_life():
        assert terminal.seen.wait(20)


def test_a_command_that_prints_needs_no_other_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line begins the time anew."""
    looks: list[Callable[[], object]] = []

    @contextmanager
    def by_hand(action: Callable[[], object], _first: float, _then: float) -> Iterator[None]:
        looks.append(action)
        yield

    monkeypatch.setattr(output, "repeated", by_hand)
    terminal = _on_a_terminal(monkeypatch, "still working")
    with signs_of_life():
        (look,) = looks
        for _ in range(10):
            echo_line("a finding", err=True)
            for _ in range(output._SILENT_TICKS):
                look()
    assert not terminal.seen.is_set()


def test_signals_are_for_the_main_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """`stop_signals` waits for them; a thread that took Ctrl-C would end the process at once."""
    _on_a_terminal(monkeypatch, "")
    masks: list[set[int]] = []
    looked = threading.Event()

    def look() -> None:
        masks.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
        looked.set()

    with output.repeated(look, 0.01, 0.01):
        assert looked.wait(20)
    assert masks[0] >= {signal.SIGINT, signal.SIGTERM}


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line would only flicker."""
    terminal = _on_a_terminal(monkeypatch, "...", patience=3600)
    with step_shown("reading") as show:
        show("pods")
        show("jobs")
    assert terminal.getvalue() == ""


def test_findings_are_not_printed_behind_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """`muster check` clears its line before each finding, and shows it again for the next."""
    monkeypatch.setattr(output, "_PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(output, "_SHORTEST_SECONDS", 0)
    terminal = _Terminal("checking the cluster ...")
    monkeypatch.setattr(sys, "stderr", terminal)

    def slow() -> Iterator[Finding]:
        assert terminal.seen.wait(20)
        yield Finding(Level.OK, "policies", "1 are valid")
        yield Finding(Level.OK, "JobSet", "is served")

    texts = [terminal.getvalue() for _ in _shown(slow())]
    line = f"checking the cluster ...{CLEARED}"
    assert texts == [line, line * 2]
    assert terminal.getvalue() == line * 3


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize("items", [[], [{"a": "b"}], [{"a": ["b", {"c": 1}]}, "x", [], {}]])
def test_items_are_printed_like_a_list(
    items: list[Any], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One by one, because the text of thousands takes gigabytes."""
    echo_data(items, output)
    whole = capsys.readouterr().out
    echo_items(items, output)
    assert capsys.readouterr().out == whole


@pytest.mark.parametrize("output", ["json", "yaml"])
@pytest.mark.parametrize(
    "sections", [{"a": []}, {"a": [1, {"b": [], "c": "x\ny"}], "d": {"e": 1}, "f": [[2]]}]
)
def test_sections_are_printed_like_a_mapping(
    sections: dict[str, Any], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of thousands of Workloads `replay -o yaml` took a gigabyte."""
    echo_data(sections, output)
    whole = capsys.readouterr().out
    echo_sections(sections, output)
    assert capsys.readouterr().out == whole


@pytest.mark.parametrize("documents", [[], [{"a": "b"}], [{"a": ["b"]}, {"c": 1}, {"d": {}}]])
def test_documents_are_printed_like_a_stream(
    documents: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of none nothing is printed."""
    assert echo_documents(documents, "yaml") == len(documents)
    assert capsys.readouterr().out == yaml.safe_dump_all(documents, sort_keys=False)
    echo_documents(documents, "json")
    assert json.loads(capsys.readouterr().out or "[]") == documents


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_a_document_is_printed_before_the_next_is_made(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of a sweep of 3,000 Jobs with invalid policies took 6 GiB together."""

    def made() -> Iterator[dict[str, int]]:
        for number in range(3):
            assert ("made" in capsys.readouterr().out) == bool(number)
            yield {"made": number}

    assert echo_documents(made(), output) == 3


def test_a_sweep_is_planned_while_it_is_printed() -> None:
    """One object after the other."""
    planned: list[str] = []
    job = a_job()
    other = {**job, "metadata": {**job["metadata"], "name": "other", "uid": "0" * 36}}
    objects = [a_namespace(), job, other]
    step = steps.step_named("create_workload")
    documents = plan_step(step, sweep(), objects, datetime.fromtimestamp(0, UTC), planned.append)
    next(documents)
    assert planned == ["object 1 of 2", ""]


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        pytest.param("plan", ["create_workload", "--event", "NAME", "--objects", "NAME"], id="an event"),
        pytest.param("check", ["--overlay", "NAME"], id="an overlay"),
        pytest.param("record", ["NAME.jsonl", "--sources", "NAME"], id="sources"),
    ],
)
def test_a_file_that_is_read_is_shown(
    command: str, arguments: list[str], muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FIFO may be waited for without an end."""
    steps: list[str] = []
    monkeypatch.setattr(output, "step_shown", noting(steps))
    file = tmp_path / "odd.yaml"
    file.write_text("[")
    assert muster(command, *(argument.replace("NAME", str(file)) for argument in arguments)).exit_code == 2
    assert steps[0] == f"reading {file}"


@pytest.mark.thorough
def test_the_seconds_of_a_long_step_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of large policies takes minutes in one step."""
    monkeypatch.setattr(output, "_LONG_STEP_SECONDS", 1)
    terminal = _on_a_terminal(monkeypatch, "... 1 s")
    with step_shown("replaying") as show:
        show("event 1 of 1")
        assert terminal.seen.wait(20)
    line = "replaying event 1 of 1 ..."
    assert terminal.getvalue() == f"{line}{CLEARED}{line} 1 s{CLEARED}"


def test_each_object_of_a_sweep_is_shown(
    muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be thousands, and each may take seconds."""
    steps: list[str] = []
    monkeypatch.setattr(plan, "step_shown", noting(steps))
    jobs = [b.a_job(b.named(f"job-{number}"), b.of_uid(f"{number}" * 8)) for number in range(3)]
    (tmp_path / "objects.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": jobs}))
    event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "dev.muster.sweep"}
    (tmp_path / "sweep.json").write_text(json.dumps(event))
    arguments = ["--event", str(tmp_path / "sweep.json"), "--objects", str(tmp_path / "objects.json")]
    assert muster("plan", "create_workload", *arguments).exit_code == 0
    assert [step for step in steps if step.startswith("planning object")] == [
        f"planning object {number} of 3" for number in (1, 2, 3)
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        pytest.param("/dev/full", "No space left on device", id="full"),
        pytest.param(None, "is closed", id="closed"),
    ],
)
def test_output_that_cannot_be_written_is_one_line(stdout: str | None, message: str, tmp_path: Path) -> None:
    """It is no bug of the command."""
    (tmp_path / "job.yaml").write_text(json.dumps(b.a_job()))
    command = shlex.join([sys.executable, "-m", "muster", "lint", str(tmp_path / "job.yaml")])
    result = subprocess.run(
        ["/bin/sh", "-c", f"{command} >{stdout or '&-'}"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert message in line


@pytest.mark.thorough
def test_a_terminal_without_unicode_gets_escapes() -> None:
    """The tick of a story ended the command with UnicodeEncodeError."""
    encoding = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(
        [sys.executable, "-m", "muster", "run", "--story", "indexed-job"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **encoding},
    )
    assert result.returncode == 0, result.stderr
    assert r"\u2714 indexed-job" in result.stdout


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "code"), [("job.yaml", 0), ("none.yaml", 2)])
def test_a_command_works_without_standard_error(tmp_path: Path, name: str, code: int) -> None:
    """Only its progress and its errors are not shown."""
    (tmp_path / "job.yaml").write_text(json.dumps(b.a_job()))
    command = shlex.join([sys.executable, "-m", "muster", "lint", str(tmp_path / name)])
    assert subprocess.run(["/bin/sh", "-c", f"{command} 2>&-"], check=False).returncode == code


@pytest.mark.thorough
def test_a_reader_that_has_gone_ends_a_command(tmp_path: Path) -> None:
    """With the status of SIGPIPE, as of other programs, though click has one of its own."""
    jobs = [
        {**a_job(), "metadata": {"name": f"job-{number}", "namespace": "team-a"}} for number in range(100)
    ]
    (tmp_path / "jobs.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": jobs}))
    command = [sys.executable, "-m", "muster", "explain", str(tmp_path / "jobs.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 128 + signal.SIGPIPE
        assert process.stderr is not None
        assert "Error" not in process.stderr.read()


def test_a_long_wait_for_a_cluster_is_shown_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line a minute at least, for who looks at a terminal."""
    monkeypatch.setattr(cluster, "_PATIENCE_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "_REMINDER_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with cluster._patience("the kubeconfig"):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 2
    assert set(lines) == {"waiting for the kubeconfig ..."}

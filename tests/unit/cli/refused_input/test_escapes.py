"""What tenants write reaches no terminal as they wrote it: policies, conditions, and errors about both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muster.cli import check, record
from muster.cluster.observe.snapshot import Snapshot
from muster.local import display
from muster.objects.meta import ObjectRef
from muster.objects.text import printable
from muster.operator.check import Finding, Level
from muster.replay.files import AppendedFile
from muster.replay.recording.events import EventRecorder
from muster.runtime.steps import step_named
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import CloudEvent
from tests.support import builders as b
from tests.unit.cli.conftest import Filed, Muster

ESCAPE = '"\\e[2J\\a\\u202e\\n": 1'
"""A key of a policy that clears the screen, rings, turns the text and breaks the line."""
POLICY = {"muster.dev/pod-group-policy": f"workload: {{}}\n{ESCAPE}"}
FORBIDDEN = set("\x1b\x07\u202e\x9b")


@pytest.mark.parametrize("options", [[], ["-o", "mermaid"]])
def test_explain_escapes_a_policy(muster: Muster, filed: Filed, options: list[str]) -> None:
    """The error about the policy names its key."""
    job = b.a_job(b.annotated(POLICY))
    printed = muster("explain", filed("job.yaml", json.dumps(job)), *options).stdout
    assert r"\x1b[2J\x07\u202e" in printed
    assert not FORBIDDEN & set(printed)


def test_status_escapes_a_condition(muster: Muster, tmp_path: Path) -> None:
    """Whichever client wrote it."""
    condition = {
        "type": "PodGroupsReady",
        "status": "False",
        "reason": "Odd",
        "message": "a\x1b[2J\x9b\u202e",
    }
    job = b.a_job()
    job["status"] = {"conditions": [{**condition, "type": "muster.dev/PodGroupsReady"}]}
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace(), job])
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig())
        printed = muster("status", "-A", "--kubeconfig", str(path)).stdout
    assert r"a\x1b[2J\x9b\u202e" in printed
    assert not FORBIDDEN & set(printed)


def test_conditions_events_and_annotations_have_escaped_messages() -> None:
    """They are printed by kubectl as they are."""
    job = b.a_job(b.annotated(POLICY))
    step = step_named("create_workload")
    meta = job["metadata"]
    ref = ObjectRef("batch/v1", "Job", meta["namespace"], meta["name"], meta["uid"])
    plan = step.plan(step.observe(Snapshot([b.a_namespace(), job]), ref), b.NOW)
    texts = [json.dumps(action.body, ensure_ascii=False) for action in plan.actions]  # type: ignore[union-attr]
    named = [text for text in texts if r"\\x1b[2J" in text]
    assert len(named) == 3, "the annotation of the fallback PodGroup, the condition and the Event"
    assert not FORBIDDEN & set("".join(texts))
    assert not any(r"\u001b" in text for text in texts)


def test_errors_are_escaped(muster: Muster, tmp_path: Path) -> None:
    """The name of a file is text of a stranger too."""
    result = muster("explain", str(tmp_path / "a\x1b[2Jb"))
    assert result.exit_code == 2
    assert r"\x1b[2J" in result.stderr
    assert "\x1b" not in result.stderr


def test_a_name_begins_no_line_of_lint(muster: Muster, filed: Filed) -> None:
    """Else a file could print the result that a reader of the log looks for."""
    claimed = "0 policies and 1 job checked: 0 errors, 0 warnings"
    job = b.a_job(b.named(f"llama\n{claimed}"), b.labelled({"muster.dev/group": "a"}))
    printed = muster("lint", filed("job.yaml", json.dumps(job))).stdout
    assert rf"llama\n{claimed}" in printed
    assert claimed not in printed.splitlines()


FORGED = "a\nok    policies: all fine"
"""A name or message that would end with a line of its own."""


def test_a_name_begins_no_line_of_explain(muster: Muster, filed: Filed) -> None:
    """A job that cannot be read is one line on standard error."""
    job = b.a_job(b.named(FORGED), b.labelled({"muster.dev/group": "a"}))
    del job["spec"]["template"]
    (line,) = muster("explain", filed("job.yaml", json.dumps(job))).stderr.splitlines()
    assert printable(FORGED) in line


def test_a_message_begins_no_line_of_check(
    muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook or an owner of a namespace chooses words of messages."""
    found = [Finding(Level.FAIL, "a dry run", FORGED)]
    monkeypatch.setattr(check, "_findings", lambda *_, **__: iter(found))
    with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        printed = muster("check", "-n", "default", "--kubeconfig", str(tmp_path / "kubeconfig")).stdout
    assert [line.split()[0] for line in printed.splitlines()] == ["FAIL"]
    assert printable(FORGED) in printed


def test_a_kind_begins_no_line_of_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever sends the events chooses it."""
    file = AppendedFile(tmp_path / "events.jsonl")
    recorder = EventRecorder(file)
    recorder.recorded[FORGED, "add"] += 1
    record._report(tmp_path, recorder, 1.0)
    file.close()
    assert printable(f"  {FORGED}: 1 add") in capsys.readouterr().out.splitlines()


def test_an_event_that_was_not_delivered_is_escaped() -> None:
    """Its sender chose type and subject: no escape, no link and no markup of the terminal's library."""
    event = CloudEvent(
        {"type": "[/x]", "subject": "[link=http://example]a\x1b[2J\x07[/link]", "id": "1"}, b""
    )
    text = display.undelivered(event)
    assert not FORBIDDEN & set(text.plain)
    assert "[/x]" in text.plain
    assert "[link=" in text.plain
    assert text.spans == []

"""What a person typed is one line of an error, never a bug: names of files, URLs, hosts and speeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import builders as b
from tests.unit.cli.conftest import Muster
from tests.unit.cli.sample import an_event

LONG = "x" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", LONG],
        ["explain", LONG],
        ["check", "--overlay", LONG],
        ["status", "--kubeconfig", LONG],
        ["status", "--kubeconfig", "~nosuchuser/config"],
        ["plan", "create_workload", "--event", LONG, "--objects", LONG],
        ["replay", "events.jsonl", "--to", "http://[::1"],
        ["record", "out.jsonl", "--listen", "\u00c9" * 70 + ":1", "--beyond-this-machine"],
    ],
)
def test_an_error_is_one_line(
    muster: Muster, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the exit status of bad input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.jsonl").write_text(json.dumps(an_event(b.a_job())))
    result = muster(*arguments)
    assert result.exit_code in {1, 2}, result.output
    assert "this is a bug" not in result.stderr
    assert result.stderr.strip().count("\n") == 0

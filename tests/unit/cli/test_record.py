"""`muster record --until`: it ends with the job that it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.simulator.apiserver import ApiServer
from tests.support import builders as b
from tests.unit.cli.conftest import Muster


@pytest.mark.timeout(30)
def test_it_ends_when_the_job_has_ended(
    muster: Muster, server: ApiServer, kubeconfig: str, tmp_path: Path
) -> None:
    """A job that runs is waited for; what is no job is bad input."""
    ended = [{"type": "Complete", "status": "True"}]
    server.load([b.a_job(b.named("done"), b.with_status(conditions=ended)), b.a_job(b.named("runs"))])
    place = ["--kubeconfig", kubeconfig, "-n", "team-a"]
    ran = muster("record", str(tmp_path / "a.jsonl"), "--until", "job/done", *place)
    assert (ran.exit_code, "0 events" in ran.output) == (0, True), ran.output
    ran = muster("record", str(tmp_path / "b.jsonl"), "--until", "job/runs", "--for", "3", *place)
    assert "0 events in 3." in ran.output
    assert muster("record", str(tmp_path / "c.jsonl"), "--until", "pod/x", *place).exit_code == 2

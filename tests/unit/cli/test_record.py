"""`muster record` of a cluster in which nothing happens; tests/stories records what does."""

from __future__ import annotations

import stat
from pathlib import Path

import yaml

from tests.unit.cli.conftest import Muster, assert_names


def test_the_objects_at_the_start_and_at_the_end_are_recorded(
    muster: Muster, tmp_path: Path, kubeconfig: str
) -> None:
    """In files that only their owner may read."""
    events, objects = tmp_path / "e.jsonl", tmp_path / "objects.yaml"
    options = ["--kubeconfig", kubeconfig, "--objects", str(objects), "--for", "0.2"]
    result = muster("record", str(events), *options)
    assert result.exit_code == 0, result.output
    assert_names(result.stdout.splitlines()[-1], str(objects), "start", "end")
    assert [moment["moment"] for moment in yaml.safe_load_all(objects.read_text())] == ["start", "end"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in (objects, events)} == {0o600}

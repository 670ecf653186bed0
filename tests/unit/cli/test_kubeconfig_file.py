"""`muster apiserver --kubeconfig-out`: a file for its owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from muster.cli import apiserver
from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Muster, assert_names


@pytest.fixture(autouse=True)
def _ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server end once it has said where it is."""

    def serve(server: ApiServer, announce: Any) -> None:
        with server:
            announce(server.url)

    monkeypatch.setattr(apiserver, "serve", serve)


@pytest.mark.parametrize("before", [None, 0o644], ids=["a new file", "a file that others may read"])
def test_a_kubeconfig_is_for_its_owner(muster: Muster, tmp_path: Path, before: int | None) -> None:
    """Whatever the mode of a file that it replaces."""
    path = tmp_path / "kubeconfig"
    if before is not None:
        path.write_text("longer than a kubeconfig\n" * 100)
        path.chmod(before)
    result = muster("apiserver", "--kubeconfig-out", str(path))
    assert result.exit_code == 0
    assert f"server: {result.stdout.strip()}" in path.read_text()
    assert "longer" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_no_symbolic_link_is_followed(muster: Muster, tmp_path: Path) -> None:
    """Its target may be somebody else's choice."""
    target, path = tmp_path / "target", tmp_path / "kubeconfig"
    target.write_text("kept\n")
    path.symlink_to(target)
    result = muster("apiserver", "--kubeconfig-out", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert_names(line, str(path))
    assert target.read_text() == "kept\n"


@pytest.mark.parametrize("is_read", [False, True])
def test_no_fifo_or_device_is_written(muster: Muster, tmp_path: Path, *, is_read: bool) -> None:
    """A FIFO waits for its reader, for ever; a device would be for its owner alone from then on."""
    path = tmp_path / "kubeconfig"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    result = muster("apiserver", "--kubeconfig-out", str(path))
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert_names(line, str(path))
    assert stat.S_IMODE(path.stat().st_mode) != 0o600
    if reader is not None:
        os.close(reader)

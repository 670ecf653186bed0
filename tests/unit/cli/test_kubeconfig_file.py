"""`muster apiserver --kubeconfig-out`: a file for its owner alone."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from muster.cli import apiserver
from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Muster


@pytest.fixture(autouse=True)
def _ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server end once it has said where it is."""

    def serve(server: ApiServer, announce: Any) -> None:
        with server:
            announce(server.url)

    monkeypatch.setattr(apiserver, "serve", serve)


def test_a_kubeconfig_is_for_its_owner(muster: Muster, tmp_path: Path) -> None:
    """It names the server, whose URL is printed."""
    path = tmp_path / "kubeconfig"
    result = muster("apiserver", "--kubeconfig-out", str(path))
    assert result.exit_code == 0
    assert f"server: {result.stdout.strip()}" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

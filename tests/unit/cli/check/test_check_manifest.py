"""`muster check --overlay` of a manifest of a release, from a file or from `helm get manifest`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.simulator.apiserver import ApiServer
from muster.simulator.overlays import built
from release.chart import manifest_text
from tests.unit.cli.conftest import Filed, Muster, assert_names

OVERLAY = built("one-service")


@pytest.fixture(name="manifest", scope="module")
def _manifest() -> str:
    return manifest_text("one-service", "0.1.0", "registry.example.com/muster@sha256:0")


@pytest.fixture(name="kubeconfig")
def _kubeconfig(tmp_path: Path) -> Iterator[str]:
    with ApiServer() as server:
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig())
        yield str(path)


@pytest.mark.thorough
def test_a_manifest_is_checked_as_its_overlay(
    muster: Muster, filed: Filed, kubeconfig: str, manifest: str
) -> None:
    """Line by line, from a file and from standard input."""
    of_the_folder = muster("check", "--overlay", str(OVERLAY), "--kubeconfig", kubeconfig)
    assert "Services: muster: " in of_the_folder.stdout
    of_the_file = muster("check", "--overlay", filed("m.yaml", manifest), "--kubeconfig", kubeconfig)
    assert of_the_file.stdout == of_the_folder.stdout
    command = [sys.executable, "-m", "muster", "check", "--overlay", "-", "--kubeconfig", kubeconfig]
    piped = subprocess.run(command, input=manifest, capture_output=True, text=True, check=False)
    assert (piped.stdout, piped.returncode) == (of_the_folder.stdout, 1)


def test_an_object_without_its_fields_is_bad_input(
    muster: Muster, filed: Filed, kubeconfig: str, manifest: str
) -> None:
    """A manifest that was edited by hand is named, without a trace."""
    broken = filed("m.yaml", manifest.replace("  roleRef:", "  role:").replace("\nroleRef:", "\nrole:"))
    result = muster("check", "--overlay", broken, "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert_names(result.stderr, "m.yaml", "roleRef")

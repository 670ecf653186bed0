"""The wheel of muster-gangs: one package, with the manifests and the steps as its data."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = """
import sys, muster
from muster.cli import main

assert muster.__file__.startswith(sys.argv[1])
main(sys.argv[2:])
"""
"""The command `muster` of the installed package; the checkout is not on its path."""


@pytest.fixture(name="wheel", scope="module")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built as a release builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.iterdir()
    return wheel


def test_it_installs_one_package_and_nothing_else(wheel: Path) -> None:
    """No `shared`, `functions` or `eventing` lands beside other people's packages."""
    assert wheel.name.startswith("muster_gangs-")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"muster"}
    assert not [name for name in names if "__pycache__" in name]


def test_commands_work_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """The steps, the manifests and the simulators come out of the package."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(tmp_path), str(wheel)], check=True, capture_output=True)
    for command in (
        ["explain", str(ROOT / "eventing/examples/racks.yaml")],
        ["run", "--story", "indexed-job"],
    ):
        ran = subprocess.run(
            [sys.executable, "-c", COMMAND, str(tmp_path), *command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr

"""A team's project of three files, with the wheel and its extra `testing` alone: that of docs/testing.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.files import shown_files
from tests.support.installed import ROOT, Installed

FILES = shown_files(ROOT / "docs/testing.md")


@pytest.fixture(name="project")
def _project(tmp_path: Path, installed: Installed) -> Path:
    """The project, with the golden file of its first test."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    updated = installed.run("python", "-m", "pytest", "--muster-update", "-k", "test_plan", cwd=tmp_path)
    assert updated.returncode == 0, updated.stdout
    return tmp_path


def test_its_tests_pass(project: Path, installed: Installed) -> None:
    """All fixtures work, warnings are errors, and the golden file is what `muster plan` would print."""
    ran = installed.run("python", "-W", "error", "-m", "pytest", "-q", cwd=project)
    assert "5 passed" in ran.stdout, ran.stdout
    assert "reason: GroupLabelled" in (project / "golden/test_plan.yaml").read_text()

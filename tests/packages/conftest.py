"""The wheel in environments of its own, each made once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.installed import Installed, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with the wheel and its extra `testing`."""
    return Installed(tmp_path_factory.mktemp("venv") / "venv", wheel, extras=["testing"])

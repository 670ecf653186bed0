"""The command `muster` in this process, and small files for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muster.cli import main

Muster = Callable[..., Result]
Filed = Callable[[str, Any], str]


@pytest.fixture
def muster() -> Muster:
    """Call `muster` with arguments; standard output and standard error are kept apart."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    return call


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A kubeconfig of an embedded API server."""
    from muster.simulator.apiserver import ApiServer  # noqa: PLC0415 - only these cases need one

    with ApiServer() as running:
        path = tmp_path / "kubeconfig"
        path.write_text(running.kubeconfig())
        yield str(path)


@pytest.fixture
def filed(tmp_path: Path) -> Filed:
    """Write a file, text as it is and anything else as JSON; its path."""

    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def without_folder(text: str, folder: Path) -> str:
    """Return a text without the folder of the test's own files, which differs from run to run."""
    return text.replace(f"{folder}/", "")


def assert_names(text: str, *names: str) -> None:
    """Assert that a text has all these names, paths and numbers, whatever its words are."""
    assert [name for name in names if name not in text] == [], text

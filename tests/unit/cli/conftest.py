"""The command `muster` in this process, and small files for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from muster.cli import main
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b

Muster = Callable[..., Result]
Filed = Callable[[str, Any], str]


@pytest.fixture
def muster() -> Muster:
    """Call `muster` with arguments; standard output and standard error are kept apart."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, list(arguments))

    return call


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """An embedded API server with every kind and the namespace team-a."""
    with ApiServer() as running:
        running.load([*resource_definitions(), b.a_namespace()])
        yield running


@pytest.fixture
def kubeconfig(server: ApiServer, filed: Filed) -> str:
    """A kubeconfig of the embedded API server."""
    return filed("kubeconfig", server.kubeconfig())


@pytest.fixture
def filed(tmp_path: Path) -> Filed:
    """Write a file, text as it is and anything else as JSON; its path."""

    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def a_config_map(namespace: str = "team-a", **data: str) -> Any:
    """The ConfigMap with the policy of a namespace, or of the administrator."""
    metadata = {"name": "muster-policy", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def assert_names(text: str, *names: str) -> None:
    """Assert that a text has all these names, paths and numbers, whatever its words are."""
    assert [name for name in names if name not in text] == [], text

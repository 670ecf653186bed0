"""A cold start does not import the kubernetes package's API classes, which take up to 0.3 s each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def loaded(statement: str) -> set[str]:
    """The modules of the kubernetes package that a fresh interpreter has after a statement."""
    output = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {module for module in output.stdout.split() if module.split(".")[0] == "kubernetes"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(
            "import muster.runtime.http.app, muster.runtime.knative, muster.runtime.serve",
            id="the runtime loads nothing of the kubernetes package until it connects",
        ),
        pytest.param(
            "from muster.steps import step_named; step_named('create_workload')",
            id="nor does a step, so that planning needs none of it",
        ),
    ],
)
def test_nothing_is_loaded(statement: str) -> None:
    """Planning without a cluster does not pay for a client."""
    assert loaded(statement) == set()


@pytest.mark.thorough
def test_client_loads_no_api_classes() -> None:
    """The client itself loads the package's configuration and pool, no API class and no model."""
    modules = loaded(
        "from muster.runtime.config import Settings, connect\nconnect(Settings(api_server='http://127.0.0.1:1'))"
    )
    assert "kubernetes.client.rest" in modules
    assert {
        name for name in modules if name.startswith(("kubernetes.client.api.", "kubernetes.client.models."))
    } == set()

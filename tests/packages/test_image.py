"""The image's command serves the functions that its arguments name."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from muster import image, steps
from muster.runtime.knative import Function


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run the command until it ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "muster.image", *arguments],
        env={**os.environ, "MUSTER_API_SERVER": "", "KUBECONFIG": "", "COLUMNS": "500", **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (["patch-pods"], ["patch_pods"]),
        (["dead-letter"], ["dead_letter"]),
        (["patch-pods", "create-workload", "dead-letter"], ["patch_pods", "create_workload", "dead_letter"]),
        (["patch-pods", "patch-pods"], ["patch_pods"]),
    ],
)
def test_it_serves_the_functions_of_its_arguments(
    arguments: list[str], paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constructor that func's server knows by its name, of these functions and no others."""
    made: list[Function] = []

    def serve(constructor: object) -> None:
        assert constructor.__name__ == "new"  # type: ignore[attr-defined]
        made.append(constructor())  # type: ignore[operator]

    monkeypatch.setattr(image, "serve", serve)
    monkeypatch.setenv("MUSTER_API_SERVER", "http://127.0.0.1:1")
    assert image.main(arguments) == 0
    (function,) = made
    assert [receiver.name for receiver in function._served._receivers] == paths
    function._asgi.executor.shutdown()


@pytest.mark.parametrize("arguments", [[], ["no-such"], ["create-workload", "no-such"]])
def test_unknown_functions_are_refused(arguments: list[str]) -> None:
    """Before anything is served, without a trace."""
    refused = run(*arguments)
    assert refused.returncode == 2
    assert refused.stderr.startswith("usage: ")
    assert "Traceback" not in refused.stderr


def test_its_help_names_every_function() -> None:
    """As they are called in Kubernetes."""
    printed = run("--help").stdout
    assert [name for name in steps.step_names() if name.replace("_", "-") not in printed] == []
    assert "dead-letter" in printed


@pytest.mark.parametrize(
    ("settings", "named"), [({}, "KUBECONFIG"), ({"MUSTER_WORKERS": "many"}, "MUSTER_WORKERS=many")]
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, str], named: str) -> None:
    """Without a trace."""
    refused = run("create-workload", **settings)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert named in refused.stderr
    assert "Traceback" not in refused.stderr

"""The ApiServerSources that `muster record` watches, and those that it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.conftest import Filed, Muster, assert_names, without_folder

SOURCE = {
    "apiVersion": "sources.knative.dev/v1",
    "kind": "ApiServerSource",
    "metadata": {"name": "mine", "namespace": "team"},
    "spec": {"resources": [{"apiVersion": "batch/v1", "kind": "Job"}], "sink": {"uri": "http://127.0.0.1"}},
}


def a_source(**changed: Any) -> str:
    """One ApiServerSource as YAML; `changed` replaces fields of its spec."""
    return yaml.safe_dump({**SOURCE, "spec": {**SOURCE["spec"], **changed}})  # type: ignore[dict-item]  # a mapping


@pytest.mark.thorough
def test_a_kind_that_is_named_twice_is_watched_once(
    muster: Muster, server: str, tmp_path: Path, filed: Any
) -> None:
    """Once for each selector; the line that tells what is recorded names it once."""
    kinds = [{"apiVersion": "v1", "kind": "ConfigMap"}] * 501
    path = filed("sources.yaml", a_source(resources=kinds))
    file = str(tmp_path / "e.jsonl")
    result = muster("record", file, "--kubeconfig", server, "--sources", path, "--for", "1s")
    assert result.exit_code == 0, result.stderr
    assert "recording ConfigMap of http" in result.stderr


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        pytest.param(
            a_source(resources=[{"apiVersion": "v1", "kind": "Secret"}]),
            ["ApiServerSource mine", "Secret"],
            id="Secrets",
        ),
        pytest.param(
            a_source(resources=[{"apiVersion": "v1", "kind": "SECRET"}]),
            ["ApiServerSource mine", "Secret"],
            id="Secrets that are spelled otherwise",
        ),
        pytest.param(
            a_source(filters=[]),
            ["ApiServerSource mine", "filters"],
            id="a field that would be passed over",
        ),
        pytest.param("kind: Broker\n", ["sources.yaml", "metadata"], id="no object"),
        pytest.param("a: [1", ["sources.yaml", "line 2"], id="no YAML"),
    ],
)
def test_sources_that_cannot_be_used_are_refused(
    muster: Muster,
    filed: Filed,
    tmp_path: Path,
    server: str,
    sources: str,
    names: list[str],
) -> None:
    """Before anything is recorded."""
    path = filed("sources.yaml", sources)
    result = muster("record", str(tmp_path / "e.jsonl"), "--kubeconfig", server, "--sources", path)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, *names)
    assert not (tmp_path / "e.jsonl").exists()

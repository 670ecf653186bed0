"""`muster record` refuses bad options before it begins, in one line, and writes no file."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.conftest import Filed, Muster, assert_names, without_folder


@pytest.mark.parametrize(
    ("name", "arguments", "names"),
    [
        pytest.param(
            "events.json",
            ["--listen", "127.0.0.1:0"],
            ["events.json", ".jsonl", ".jsonl.gz"],
            id="a file of another kind",
        ),
        pytest.param(
            "events.jsonl",
            ["--listen", "8080"],
            ["--listen", "'8080'", "HOST:PORT"],
            id="a port without a colon",
        ),
        pytest.param(
            "events.jsonl",
            ["--kubeconfig", "nowhere"],
            ["nowhere"],
            id="no cluster",
        ),
        pytest.param(
            "missing/events.jsonl",
            ["--listen", "127.0.0.1:0"],
            ["missing/events.jsonl"],
            id="a folder that is not there",
        ),
    ],
)
def test_bad_record_options_are_refused(
    muster: Muster, tmp_path: Path, name: str, arguments: list[str], names: list[str]
) -> None:
    """Exit status 2, and no file."""
    result = muster("record", str(tmp_path / name), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, *names)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_there_is_kept(muster: Muster, filed: Filed, tmp_path: Path) -> None:
    """A recording is not made twice by mistake."""
    path = filed("events.jsonl", "kept\n")
    result = muster("record", path, "--listen", "127.0.0.1:0", "--for", "0.1")
    assert result.exit_code == 2
    (line,) = without_folder(result.stderr, tmp_path).splitlines()
    assert_names(line, "events.jsonl", "--overwrite")
    assert Path(path).read_text() == "kept\n"
    assert muster("record", path, "--listen", "127.0.0.1:0", "--for", "0.1", "--overwrite").exit_code == 0
    assert Path(path).read_text() == ""


def test_cluster_objects_are_recorded_beside_sent_events(muster: Muster, tmp_path: Path, server: str) -> None:
    """With --listen the cluster is only asked for its objects."""
    objects = tmp_path / "objects.yaml"
    options = ["--listen", "127.0.0.1:0", "--kubeconfig", server, "--objects", str(objects), "--for", "0.2"]
    result = muster("record", str(tmp_path / "e.jsonl"), *options)
    assert result.exit_code == 0, result.output
    line = result.stdout.splitlines()[-1]
    assert_names(line, str(objects), "start", "end")
    assert [moment["moment"] for moment in yaml.safe_load_all(objects.read_text())] == ["start", "end"]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (objects, tmp_path / "e.jsonl")}
    assert modes == {0o600}, "they contain objects of a cluster"


SOURCE = {
    "apiVersion": "sources.knative.dev/v1",
    "kind": "ApiServerSource",
    "metadata": {"name": "mine", "namespace": "team"},
    "spec": {"resources": [{"apiVersion": "batch/v1", "kind": "Job"}], "sink": {"uri": "http://127.0.0.1"}},
}


def a_source(**changed: Any) -> str:
    """One ApiServerSource as YAML; `changed` replaces fields of its spec."""
    return yaml.safe_dump({**SOURCE, "spec": {**SOURCE["spec"], **changed}})  # type: ignore[dict-item]  # a mapping


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        pytest.param(
            a_source(resources=[{"apiVersion": "v1", "kind": "Secret"}]),
            ["ApiServerSource mine", "Secret"],
            id="Secrets",
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

"""`muster run` on an existing cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from muster.cli import run
from muster.local import stack
from muster.local.stack import StackOptions
from muster.runtime.config import Settings
from muster.simulator.broker import CloudEvent, Report
from tests.unit.cli.conftest import Muster

EVENT = CloudEvent({"id": "1", "type": "dev.knative.apiserver.resource.add", "subject": "/apis/v1/pods/p"})


class _Stack:
    """A stack that delivers one event and buries another."""

    def __init__(self, _options: StackOptions, _listener: object, reporter: Callable[[Report], None]) -> None:
        self._reporter = reporter

    def __enter__(self) -> Any:
        self._reporter(Report("patch-pods", CloudEvent({"id": "2", "type": "taken"}), 202, 1, 0.1))
        self._reporter(Report("patch-pods", EVENT, 500, 4, 3.0, dead_letter=202))
        return SimpleNamespace(url="http://here", broker_url="http://there")

    def __exit__(self, *_: object) -> None:
        return


def test_an_undelivered_event_is_reported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once: the dead letters of a local broker end with it."""
    monkeypatch.setattr(run, "Stack", _Stack)
    monkeypatch.setattr(run, "_wait", lambda: None)
    assert run._serve_cluster(StackOptions())
    out = capsys.readouterr().out
    assert "taken" not in out
    (line,) = (line for line in out.splitlines() if EVENT["subject"] in line)
    assert EVENT["type"] in line


@pytest.fixture(name="written")
def _written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], list[Path]]:
    """Let `muster run` end once all parts run, whether or not all APIs are served; the files it wrote."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(stack, "WATCH_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(run, "_wait", lambda: None)
    # Threads of functions stay until their process ends.
    monkeypatch.setattr(stack, "Settings", partial(Settings, threads=1))
    return lambda: list(folder.glob("muster-*/*"))


def with_user(kubeconfig: str, user: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a kubeconfig with another user."""
    content: dict[str, Any] = yaml.safe_load(Path(kubeconfig).read_text())
    content["users"][0]["user"] = user
    return content


@pytest.mark.thorough
@pytest.mark.usefixtures("written")
def test_sources_of_too_many_kinds_are_not_watched(muster: Muster, server: str, tmp_path: Path) -> None:
    """Each has a thread, as in `muster record`."""
    source = {
        "apiVersion": "sources.knative.dev/v1",
        "kind": "ApiServerSource",
        "metadata": {"name": "mine", "namespace": "muster-system"},
        "spec": {
            "resources": [
                {"apiVersion": "v1", "kind": "Pod", "selector": {"matchLabels": {"a": f"b{number}"}}}
                for number in range(501)
            ],
            "sink": {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "muster"}},
        },
    }
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text("resources: [source.yaml]\n")
    (overlay / "source.yaml").write_text(yaml.safe_dump(source))
    result = muster("run", "--kubeconfig", server, "--overlay", str(overlay))
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, "more than 500 kinds and namespaces" in line) == (1, True), line

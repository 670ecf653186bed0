"""`muster run` on an existing cluster."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from muster.cli import run
from muster.local.stack import StackOptions
from muster.simulator.broker import CloudEvent, Report

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

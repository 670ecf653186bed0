"""Functions over HTTP: paths and probes; settings, and a start that fails."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from muster.cluster import errors
from muster.runtime.config import BadSettingError, Settings, from_environment
from muster.runtime.serve import main
from tests.unit.runtime.fakes import FakeCluster, a_client, until


def test_a_function_is_alive_while_the_api_server_is_away() -> None:
    """Restarting it would not help; it is not ready."""
    client = a_client(cluster=FakeCluster(on_read=errors.Unavailable("refused")))
    assert client.get("/health/liveness").status_code == 200
    until(lambda: client.get("/health/readiness").text == "patch-pods: Unavailable: refused\n")
    assert client.get("/health/readiness").status_code == 503


@pytest.mark.parametrize(
    ("arguments", "environment", "words"),
    [
        (["create-workload"], {}, "KUBECONFIG"),
        (["create-workload"], {"MUSTER_THREADS": "many"}, "MUSTER_THREADS=many"),
        (["create-workload"], {"KUBECONFIG": "/no/such/file"}, "KUBECONFIG: /no/such/file"),
        (["no-such-step"], {}, "no function 'no-such-step'"),
    ],
)
def test_a_start_that_fails_says_why(
    arguments: list[str], environment: Any, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """In one line, with exit code 2."""
    for name in ("MUSTER_API_SERVER", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert (ended.value.code, words in line) == (2, True), line


def test_every_setting_has_its_variable() -> None:
    """MUSTER_ and its name, but KUBECONFIG as everywhere; empty variables keep the defaults."""
    names = {f"MUSTER_{field.name.upper()}": "7" for field in fields(Settings)}
    changed = from_environment(names | {"MUSTER_LOG_LEVEL": "debug", "KUBECONFIG": "7"})
    assert [field.name for field in fields(Settings) if getattr(changed, field.name) == field.default] == []
    assert (changed.log_level, changed.threads, changed.deadline_seconds) == ("DEBUG", 7, 7.0)
    assert from_environment({"MUSTER_THREADS": "", "KUBECONFIG": ""}) == Settings()


@pytest.mark.parametrize(
    ("variable", "text"),
    [("MUSTER_DEAD_LETTER_LIMIT", "0"), ("MUSTER_DEADLINE_SECONDS", "nan"), ("MUSTER_LOG_LEVEL", "loud")],
)
def test_bad_value_is_named(variable: str, text: str) -> None:
    """A value that cannot be used is refused with its variable, at the start."""
    with pytest.raises(BadSettingError, match=re.escape(f"{variable}={text}")):
        from_environment({variable: text})

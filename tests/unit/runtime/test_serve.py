"""Functions over HTTP: paths and probes; settings, and a start that fails."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from typing import Any

import pytest

from muster.cluster import errors
from muster.runtime.config import BadSettingError, Settings, from_environment
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.serve import Functions, main
from tests.unit.runtime.fakes import NOW, FakeCluster, a_client, a_handler, a_step, an_event, until
from tests.unit.runtime.test_readiness import Authorizer


@pytest.mark.parametrize(("method", "path", "status"), [("POST", "/events", 404), ("PUT", "/", 405)])
def test_other_requests_are_refused_with_what_is_accepted(method: str, path: str, status: int) -> None:
    """Another path or method is refused with the one that works."""
    answer = a_client().open(path, method=method)
    assert (answer.status_code, "Allow" in answer.headers) == (status, status == 405)
    assert "POST /" in answer.text


def test_an_empty_path_is_no_redirect() -> None:
    """No broker follows one: the event would be lost."""
    headers, body = an_event()
    answer = a_client().post("/", headers=headers, data=body, environ_overrides={"PATH_INFO": ""})
    assert answer.status_code == 200


def test_a_function_is_alive_while_the_api_server_is_away() -> None:
    """Restarting it would not help; it is not ready."""
    client = a_client(cluster=FakeCluster(on_read=errors.Unavailable("refused")))
    assert client.get("/health/liveness").status_code == 200
    until(lambda: client.get("/health/readiness").text == "patch-pods: Unavailable: refused\n")
    assert client.get("/health/readiness").status_code == 503


def test_several_functions_of_a_process() -> None:
    """Each has its path; probes and metrics are those of all."""
    clusters = {name: Authorizer() for name in ("create_workload", "patch_pods", "dead_letter")}
    *steps, letters = clusters
    handlers: list[Any] = [(a_handler(a_step(name=name), clusters[name]), clusters[name]) for name in steps]
    keeper = DeadLetters(clusters[letters], Settings(), lambda: NOW)
    client = Functions(*handlers, (keeper, clusters[letters])).app.test_client()
    headers, body = an_event()
    answer = client.post("/create-workload", headers=headers, data=body)
    assert answer.headers["ce-type"] == "dev.muster.create_workload.gates_lifted"
    assert client.post("/dead-letter/", headers=headers, data=body).status_code == 202
    assert (len(clusters["create_workload"].calls), clusters["patch_pods"].calls) == (3, [])
    assert client.post("/", headers=headers, data=body).status_code == 405
    exposition = client.get("/metrics").text
    assert exposition.count("# HELP muster_events_total") == exposition.count("# HELP process_cpu") == 1
    assert {'function="create_workload"', 'function="dead_letter"'} <= set(
        re.findall(r'function="\w+"', exposition)
    )
    until(lambda: client.get("/health/readiness").text == "OK\n")


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
    arguments: list[str],
    environment: dict[str, str],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
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
    [
        ("MUSTER_THREADS", "many"),
        ("MUSTER_DEAD_LETTER_LIMIT", "0"),
        ("MUSTER_DEADLINE_SECONDS", "nan"),
        ("MUSTER_LOG_LEVEL", "loud"),
    ],
)
def test_bad_value_is_named(variable: str, text: str) -> None:
    """A value that cannot be used is refused with its variable, at the start."""
    with pytest.raises(BadSettingError, match=re.escape(f"{variable}={text}")):
        from_environment({variable: text})


def test_planning_imports_no_client() -> None:
    """The kubernetes package takes 0.4 s to import: only a function that connects needs it."""
    statement = (
        "import sys, muster.runtime.knative, muster.runtime.serve; sys.exit('kubernetes' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", statement], check=True)

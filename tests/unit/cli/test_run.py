"""`muster run` on an existing cluster."""

from __future__ import annotations

import json
import signal
import stat
import tempfile
import time
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
from tests.unit.cluster.http.test_kubeconfig import id_token, oidc
from tests.unit.cluster.scripted import ScriptedResponse, serving

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
@pytest.mark.parametrize("options", [[], ["--processes"]], ids=["threads", "processes"])
def test_functions_get_a_file_of_the_chosen_context(
    muster: Muster,
    server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: Callable[[], list[Path]],
    options: list[str],
) -> None:
    """Of its owner alone, until the end; the kubeconfig itself may have any name."""
    content = with_user(server, {"token": "mine"})
    content["users"].append({"name": "other", "user": {"token": "another"}})
    path = tmp_path / "a:b"
    path.write_text(yaml.safe_dump(content))
    seen: list[tuple[int, str]] = []
    monkeypatch.setattr(
        run, "_wait", lambda: seen.extend((file.stat().st_mode, file.read_text()) for file in written())
    )
    result = muster("run", "--kubeconfig", str(path), *options)
    assert result.exit_code == 0, result.stderr
    ((mode, text),) = seen
    assert stat.S_IMODE(mode) == 0o600
    assert [user["user"] for user in yaml.safe_load(text)["users"]] == [{"token": "mine"}]
    assert written() == []
    assert signal.getsignal(signal.SIGHUP) is signal.default_int_handler, "a closed terminal leaves no file"


@pytest.mark.thorough
def test_no_issuer_of_a_token_is_asked(
    muster: Muster, server: str, tmp_path: Path, written: Callable[[], list[Path]]
) -> None:
    """It could answer for ever, or never; the package asked it minutes before the token expires."""
    path = tmp_path / "config"
    with serving(ScriptedResponse(404)) as issuer:
        token = id_token(time.time() + 120)
        provider = {"id-token": token, "refresh-token": "a", "client-id": "b", "idp-issuer-url": issuer.url}
        before = yaml.safe_dump(with_user(server, oidc(**provider)))
        path.write_text(before)
        result = muster("run", "--kubeconfig", str(path))
    assert result.exit_code == 0, result.stderr
    assert (issuer.requests, path.read_text(), written()) == ([], before, [])


@pytest.mark.thorough
@pytest.mark.usefixtures("written")
def test_a_long_kubeconfig_takes_little_time(muster: Muster, server: str, tmp_path: Path) -> None:
    """It is read once: PyYAML's Python parser took 90 s, and again for each function."""
    path = tmp_path / "config"
    path.write_text(Path(server).read_text() + "extensions: [" + "1," * 240_000 + "1]\n")
    before = time.process_time()
    result = muster("run", "--kubeconfig", str(path))
    assert result.exit_code == 0, result.stderr
    assert time.process_time() - before < 20


@pytest.mark.parametrize("works", [1, 2], ids=["before the parts start", "when a function starts"])
def test_a_plugin_that_fails_later_is_one_line(
    muster: Muster, server: str, tmp_path: Path, written: Callable[[], list[Path]], works: int
) -> None:
    """The command, the source and each function ask it for credentials."""
    api_version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": api_version, "kind": "ExecCredential", "status": {"token": "b"}}
    calls, path = tmp_path / "calls", tmp_path / "config"
    script = f"echo >> {calls}; [ $(wc -l < {calls}) -le {works} ] && echo '{json.dumps(credential)}'"
    use = {"apiVersion": api_version, "command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    path.write_text(yaml.safe_dump(with_user(server, {"exec": use})))
    result = muster("run", "--kubeconfig", str(path))
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, "exec plugin 'sh'" in line, written()) == (2, True, [])


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

"""Every command that needs a cluster prints the same line about a kubeconfig or a server that it cannot use.

One table of kubeconfigs, one of servers, one of namespaces; none may end in a traceback, and `muster status`
must not say that nothing waits where it could not look.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import MOST_DATA
from muster.cluster.kubeconfig_entries import MOST_BYTES
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b
from tests.unit.cli.conftest import Muster, assert_names
from tests.unit.cluster.scripted import ScriptedResponse, serving, status

COMMANDS = {
    "status": ["status"],
    "explain": ["explain", "job/llama"],
    "check": ["check"],
    "check --uninstall": ["check", "--uninstall"],
    "redrive": ["redrive"],
    "record": ["record", "recorded.jsonl", "--for", "1"],
    "run": ["run"],
}
"""Every command that works on a cluster; `run` only with --kubeconfig."""

NO_SERVER = "http://127.0.0.1:1"
"""A server that is not there: the port is reserved."""


def a_kubeconfig(server: str = NO_SERVER, /, **changed: Any) -> dict[str, Any]:
    """A kubeconfig with one context; `changed` replaces fields, those that are None are left out."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "near", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "near", "user": "me"}}],
        **changed,
    }
    return {name: value for name, value in config.items() if value is not None}


def with_plugin(command: str, *arguments: str) -> dict[str, Any]:
    """A kubeconfig whose credentials come from an exec plugin."""
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": command,
        "args": list(arguments),
        "interactiveMode": "Never",
    }
    return a_kubeconfig(users=[{"name": "me", "user": {"exec": plugin}}])


def a_context(**context: str) -> list[dict[str, Any]]:
    """The context `here`, with these fields."""
    return [{"name": "here", "context": context}]


KUBECONFIGS = [
    pytest.param(None, ["No such file"], id="a file that does not exist"),
    pytest.param("", ["is empty"], id="an empty file"),
    pytest.param("a: [1\n", ["config:2:1"], id="broken YAML"),
    pytest.param("just words", ["is not a kubeconfig"], id="no mapping"),
    pytest.param(b"\xff\xfe\x00", ["byte 0"], id="no text"),
    pytest.param("#" * (MOST_BYTES + 1), [str(MOST_BYTES)], id="too many bytes"),
    pytest.param(
        a_kubeconfig(**{"current-context": None}), ["current-context", "'here'"], id="no context chosen"
    ),
    pytest.param(
        {"apiVersion": "v1", "kind": "Config", "contexts": None}, ["current-context"], id="no contexts at all"
    ),
    pytest.param(
        a_kubeconfig(**{"current-context": "there"}), ["'there'", "'here'"], id="a context that is not there"
    ),
    pytest.param(
        a_kubeconfig(contexts=a_context(cluster="far", user="me")), ["'here'", "'far'"], id="no such cluster"
    ),
    pytest.param(
        a_kubeconfig(contexts=a_context(cluster="near", user="you")), ["'here'", "'you'"], id="no such user"
    ),
    pytest.param(
        a_kubeconfig(contexts=a_context(user="me")), ["'here'", "cluster"], id="a context of no cluster"
    ),
    pytest.param(a_kubeconfig(""), ["'near'", "server"], id="a cluster without a server"),
    pytest.param(a_kubeconfig("example.com"), ["'near'", "'example.com'"], id="a server that is no URL"),
    pytest.param(
        a_kubeconfig(users=[{"name": "me", "user": {"auth-provider": {"config": {"cmd-path": "/bin/sh"}}}}]),
        ["'here'", "auth-provider oidc"],
        id="an auth-provider that runs a command",
    ),
    pytest.param(
        a_kubeconfig(users=[{"name": "me", "user": {"auth-provider": {"name": "oidc"}}}]),
        ["'here'", "id-token"],
        id="an auth-provider without a token",
    ),
    pytest.param(a_kubeconfig("http://[::1"), ["'near'", "'http://[::1'"], id="half an IPv6 address"),
    *(
        pytest.param(a_kubeconfig(server), ["'near'", f"'{shown}'"], id=f"a login in {what}")
        for server, shown, what in (
            ("admin:hunter2@example.com", "example.com", "a server without a scheme"),
            ("ftp://hunter2@example.com/a?t=hunter2", "ftp://example.com/a", "another scheme"),
            (
                "https://admin:hunter2@example.com:99999",
                "https://example.com:99999",
                "a URL with no such port",
            ),
            ("https://admin:hunter2@[::1", "https://[::1", "half an IPv6 address"),
            ("https://admin:hunter2/3@example.com", "https://example.com", "a URL with a slash in it"),
        )
    ),
    pytest.param(a_kubeconfig(contexts="none"), ["contexts"], id="contexts that are no list"),
    pytest.param(a_kubeconfig(users=[{"user": {}}]), ["users[0]", "name"], id="a user without a name"),
    pytest.param(
        a_kubeconfig(
            "https://127.0.0.1:1",
            users=[{"name": "me", "user": {"client-certificate": "cert.pem", "client-key": "key.pem"}}],
        ),
        ["cert.pem"],
        id="a certificate that is not there",
    ),
    pytest.param(with_plugin("false"), ["'false'", "returned 1"], id="an exec plugin that fails"),
    pytest.param(with_plugin("no-such-plugin"), ["'no-such-plugin'"], id="an exec plugin that is not there"),
    pytest.param(
        with_plugin("echo", "{}"), ["'echo'", "apiVersion"], id="an exec plugin that gives no credentials"
    ),
]


def one_line(result: Result, exit_code: int) -> str:
    """The one line on standard error of a command that could do nothing."""
    assert result.exit_code == exit_code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("muster: ")
    return line


Run = Callable[[str, str], Result]


@pytest.fixture(name="run")
def _run(muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one of COMMANDS with a kubeconfig, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda command, path: muster(*COMMANDS[command], "--kubeconfig", path)


@pytest.mark.thorough
@pytest.mark.parametrize(("content", "names"), KUBECONFIGS)
def test_a_bad_kubeconfig_is_reported_in_the_same_line_by_all_commands(
    run: Run, tmp_path: Path, content: Any, names: list[str]
) -> None:
    """Exit status 2, the file, and what is wrong in it."""
    path = tmp_path / "config"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    lines = {command: one_line(run(command, str(path)), 2) for command in COMMANDS}
    line = lines["status"]
    assert set(lines.values()) == {line}
    assert_names(line, str(path), *names)
    assert "hunter2" not in line


SERVERS = [
    pytest.param(None, ["Connection refused"], id="connection refused"),
    pytest.param(ScriptedResponse(404, b"404 page not found"), ["404"], id="a server of 404s"),
    pytest.param(ScriptedResponse(200, b"<html>"), ["200"], id="a web page"),
    pytest.param(ScriptedResponse(200, {"hello": "you"}), ["200"], id="some other API"),
    pytest.param(ScriptedResponse(503, b"down"), ["503"], id="a proxy whose server is down"),
    pytest.param(
        ScriptedResponse(401, status(401, "Unauthorized")), ["credentials"], id="expired credentials"
    ),
]


@pytest.mark.parametrize(("answer", "names"), SERVERS)
def test_a_bad_server_is_reported_in_the_same_line_by_all_commands(
    run: Run, tmp_path: Path, answer: ScriptedResponse | None, names: list[str]
) -> None:
    """Exit status 1, the URL, and what came from there; never that nothing waits."""
    path = tmp_path / "config"
    with serving(answer or ScriptedResponse()) as server:
        url = server.url if answer else NO_SERVER
        path.write_text(yaml.safe_dump(a_kubeconfig(url)))
        lines = {command: one_line(run(command, str(path)), 1) for command in COMMANDS}
    line = lines["status"]
    assert set(lines.values()) == {line}
    assert_names(line, url, *names)


def test_a_server_without_tls_is_reported(run: Run, tmp_path: Path) -> None:
    """The cause alone, not the layers of the library."""
    path = tmp_path / "config"
    with serving(ScriptedResponse()) as server:
        path.write_text(yaml.safe_dump(a_kubeconfig(server.url.replace("http:", "https:"))))
        line = one_line(run("status", str(path)), 1)
    assert_names(line, "SSL")
    assert "HTTPSConnectionPool" not in line


def test_an_interrupted_command_leaves_no_trace(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 130, as a shell has it after Ctrl-C."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("muster.cli.status.connected", interrupted)
    result = muster("status")
    assert (result.exit_code, result.stderr.strip()) == (130, "")


def test_a_bug_is_one_line_too(muster: Muster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 70; the trace is printed with a variable."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("muster.cli.status.connected", broken)
    assert "Traceback" in muster("status").stderr  # tests/conftest.py sets the variable
    monkeypatch.delenv("MUSTER_TRACEBACK")
    line = one_line(muster("status"), 70)
    assert_names(line, "ZeroDivisionError", "test_bad_clusters.py", "MUSTER_TRACEBACK=1")


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Any:
    """The kubeconfig of an embedded API server with a Job in team-a, whose context is of that namespace."""
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace(), b.a_job()])
        config = a_kubeconfig(server.url, contexts=a_context(cluster="near", user="me", namespace="team-a"))
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        yield str(tmp_path / "config")


MISSING = {
    "status": ["status", "-n", "nowhere"],
    "explain": ["explain", "job/llama", "-n", "nowhere"],
    "check": ["check", "--before", "-n", "nowhere"],
    "redrive": ["redrive", "-n", "nowhere"],
}


@pytest.mark.parametrize("command", MISSING)
def test_a_namespace_that_does_not_exist_is_reported(muster: Muster, server: str, command: str) -> None:
    """Nothing is said about what is in it."""
    line = one_line(muster(*MISSING[command], "--kubeconfig", server), 1)
    assert_names(line, "'nowhere'")


def test_the_namespace_is_the_one_of_the_context(muster: Muster, server: str) -> None:
    """As with kubectl."""
    assert muster("explain", "job/llama", "--kubeconfig", server).stdout.startswith("Job team-a/llama")
    line = one_line(muster("explain", "job/qwen", "--kubeconfig", server), 1)
    assert_names(line, "Job team-a/qwen")


class TestKubeconfigVariable:
    """$KUBECONFIG may name several files: the first that has a value counts, and missing files do not."""

    @staticmethod
    def listed(monkeypatch: pytest.MonkeyPatch, folder: Path, **contents: Any) -> None:
        """Set the variable to files in a folder; None makes none."""
        for name, content in contents.items():
            if content is not None:
                (folder / name).write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(folder / name) for name in contents))

    def test_missing_files_are_skipped(
        self, muster: Muster, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One of two is enough."""
        monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'none'}{os.pathsep}{server}")
        assert muster("explain", "job/llama").exit_code == 0

    @pytest.mark.usefixtures("server")
    def test_the_first_current_context_counts(
        self, muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its cluster and user may be in another file."""
        context = {"cluster": "near", "user": "me", "namespace": "nowhere"}
        first = {"contexts": [{"name": "first", "context": context}], "current-context": "first"}
        self.listed(monkeypatch, tmp_path, first=first, config=None)
        line = one_line(muster("explain", "job/llama"), 1)
        assert_names(line, "'nowhere'")
        assert muster("explain", "job/llama", "--context", "here").exit_code == 0

    @pytest.mark.thorough
    def test_the_files_share_a_limit_of_data(
        self, muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kubernetes package makes ten times as much of them: 4 MB took 1.4 GiB and 45 s."""
        self.listed(monkeypatch, tmp_path, a=None, b=None)
        for name in ("a", "b"):
            (tmp_path / name).write_text("x: [" + "{a: 1}," * 40_000 + "]\n")
        assert_names(one_line(muster("status"), 2), str(tmp_path / "b"), str(MOST_DATA))

    def test_no_kubeconfig_of_the_list_exists(
        self, muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are named, with the ways to name others."""
        self.listed(monkeypatch, tmp_path, a=None, b=None)
        line = one_line(muster("status"), 2)
        assert_names(line, str(tmp_path / "a"), str(tmp_path / "b"), "--kubeconfig", "$KUBECONFIG")

    def test_without_a_home_folder_another_kubeconfig_is_asked_for(
        self, muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As in a container whose user has no name."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.delenv("HOME")
        monkeypatch.setattr("pwd.getpwuid", dict[int, Any]().__getitem__)
        assert_names(one_line(muster("status", "--kubeconfig", str(tmp_path / "none")), 2), "none")

    def test_the_default_is_the_kubeconfig_in_the_home_folder(
        self, muster: Muster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As with kubectl."""
        monkeypatch.delenv("KUBECONFIG", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert_names(one_line(muster("status"), 2), str(tmp_path / ".kube" / "config"))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"a": 1}, id="another object"),
        pytest.param([1], id="a list"),
        pytest.param({"spec": ["schedulingGroup"]}, id="a spec that is a list"),
        pytest.param(None, id="null"),
    ],
)
def test_a_dry_run_that_something_else_answers_is_reported(
    muster: Muster, server: str, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    """A proxy may answer 201 to anything; it is no bug of the command."""
    raw = Client.raw

    def proxied(client: Client, method: str, path: str, **options: Any) -> tuple[int, Any]:
        return (201, answer) if method == "POST" else raw(client, method, path, **options)

    monkeypatch.setattr(Client, "raw", proxied)
    result = muster("check", "--before", "--kubeconfig", server)
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert_names(line, "POST /api/v1/namespaces/team-a/pods", "spec")


@pytest.mark.parametrize("field", ["tokenFile", "client-certificate", "client-key", "certificate-authority"])
@pytest.mark.parametrize("name", ["/dev/zero", "fifo", "large", "empty"])
def test_files_of_a_kubeconfig_are_bounded(muster: Muster, tmp_path: Path, field: str, name: str) -> None:
    """The kubernetes package reads them whole: a device until memory ends, a FIFO for ever."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "large").write_text("x" * (MOST_BYTES + 1))
    (tmp_path / "empty").touch()
    of_cluster = {field: name} if field == "certificate-authority" else {}
    cluster = {"server": "https://127.0.0.1:1", **of_cluster}
    config = a_kubeconfig(
        clusters=[{"name": "near", "cluster": cluster}],
        users=[{"name": "me", "user": {} if of_cluster else {field: name}}],
    )
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    result = muster("status", "--kubeconfig", str(tmp_path / "config"))
    assert result.exit_code == 2
    assert f"{field} {tmp_path / name}: is no file of 1 to {MOST_BYTES} bytes" in result.stderr

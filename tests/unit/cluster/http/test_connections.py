"""How a client reaches its API server: credentials, URL and proxy."""

from __future__ import annotations

import json
from pathlib import Path

import certifi
import pytest
from kubernetes.config import incluster_config

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.objects.resources import PODS
from tests.unit.cluster.scripted import ScriptedResponse, serving


def _with_token(url: str, token: str, path: Path) -> Client:
    """A client with a kubeconfig that has this token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    path.write_text(json.dumps(config))
    return client_of(str(path), user_agent="muster-test")


@pytest.mark.parametrize("token", ["secret", "secret\n"])
def test_a_kubeconfigs_token_is_sent(tmp_path: Path, token: str) -> None:
    """Credentials come from the kubernetes package; a newline at their end is that of a file."""
    with serving(ScriptedResponse(200, {"metadata": {"name": "llama-0"}})) as server:
        _with_token(server.url, token, tmp_path / "config").get(PODS, "llama-0", "team-a")
    headers = server.requests[0].headers
    assert (headers["authorization"], headers["user-agent"]) == ("Bearer secret", "muster-test")


@pytest.mark.parametrize("token", ["sec\nret", "sec\r\nx: ret", "sec€ret", "sec\0ret"])
def test_a_token_that_no_header_can_have_is_in_no_message(tmp_path: Path, token: str) -> None:
    """Functions answer messages to senders, and the command prints them into logs of CI."""
    client = _with_token("http://127.0.0.1:1", token, tmp_path / "config")
    with pytest.raises(errors.Unauthorized) as caught:
        client.get(PODS, "llama-0", "team-a")
    assert "ret" not in caught.value.message.replace("that no HTTP header may have", "")


@pytest.mark.parametrize(
    ("server", "shown"),
    [
        ("https://admin:hunter2@example.com:6443", "https://example.com:6443"),
        ("https://hunter2@example.com/clusters/a", "https://example.com/clusters/a"),
        ("http://me:hunt@er2@[::1]:80", "http://[::1]:80"),
        ("https://example.com/me@home", "https://example.com/me@home"),
    ],
)
def test_the_url_of_a_server_has_no_login(server: str, shown: str) -> None:
    """Commands print it, and it is the source of every recorded event."""
    assert Client.for_server(server).url == shown


def test_a_pods_service_account_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a cluster the address comes from the environment, the token from its file."""
    (tmp_path / "token").write_text("renewed-now-and-then")
    (tmp_path / "ca.crt").write_text(Path(certifi.where()).read_text())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    client = Client.in_cluster()
    assert client._connections._credentials() == {"authorization": "bearer renewed-now-and-then"}
    assert client.url == "https://127.0.0.1:6443"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_server_on_this_machine_is_reached_without_a_proxy(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY would send its requests to another host; other servers are reached through it."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    assert Client.for_server("https://10.96.0.1")._connections._pool.proxy is not None
    assert Client.for_server(f"http://{host}:8001")._connections._pool.proxy is None

"""The `kubernetes` package gets the chosen context of a kubeconfig alone, and no token to refresh."""

from __future__ import annotations

import base64
import json
import os
import ssl
import time
from pathlib import Path
from typing import Any

import certifi
import pytest
import yaml

from muster.cluster.errors import Unauthorized
from muster.cluster.kubeconfig import BadKubeconfigError, client_of, read_kubeconfig
from tests.unit.cluster.scripted import ScriptedResponse, serving


def write(path: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1") -> Path:
    """Write a kubeconfig with the context `here` of a user."""
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "near", "user": "me"}}],
        "clusters": [{"name": "near", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": user}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def authorization(paths: list[Path], user: dict[str, Any]) -> str:
    """Return the header with which the user in the first of the files sends requests."""
    with serving(ScriptedResponse(body={})) as server:
        write(paths[0], user, server.url)
        read_kubeconfig(paths).client("test").raw("GET", "/version")
        return server.requests[0].headers["authorization"]


def oidc(name: str = "oidc", **config: str) -> dict[str, Any]:
    """Return a user with an auth-provider."""
    return {"auth-provider": {"name": name, "config": config}}


def id_token(expires: Any) -> str:
    """Return a JSON web token."""
    parts = ({"alg": "none"}, {"exp": expires})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*encoded, "signature"])


NO_TIMES: list[Any] = ["9999999999", True, None, [], 2**63, 10**400, float("inf"), float("nan")]
"""What an id-token may say about its end that is no time."""


@pytest.mark.parametrize("token", [id_token(2**40), "opaque", "a.b.c"])
def test_the_id_token_of_an_auth_provider_is_sent(tmp_path: Path, token: str) -> None:
    """The API server decides about one that does not say when it expires."""
    assert authorization([tmp_path / "config"], oidc(**{"id-token": token})) == f"Bearer {token}"


@pytest.mark.parametrize(
    "user",
    [
        *(oidc(**{"id-token": id_token(no_time)}) for no_time in NO_TIMES),
        oidc(**{"id-token": id_token(1), "refresh-token": "a", "idp-issuer-url": "http://127.0.0.1:1"}),
        oidc("gcp", **{"access-token": "a"}),
        oidc("gcp", **{"cmd-path": "false"}),
        {"auth-provider": {"name": "oidc"}},
        {"auth-provider": ["oidc"]},
    ],
)
def test_no_token_is_refreshed(tmp_path: Path, user: dict[str, Any]) -> None:
    """An issuer could answer for ever, or never; kubectl refreshes a token and writes it to the file."""
    with pytest.raises(BadKubeconfigError, match="auth-provider"):
        read_kubeconfig([write(tmp_path / "config", user)])


@pytest.mark.parametrize(
    ("field", "value"),
    [("as", "a"), ("as-uid", "1"), ("as-groups", ["a"]), ("as-user-extra", {"a": ["b"]})],
)
def test_a_user_who_acts_as_another_is_refused(tmp_path: Path, field: str, value: Any) -> None:
    """Else the command would act with all rights of the first one."""
    with pytest.raises(BadKubeconfigError, match="impersonation"):
        read_kubeconfig([write(tmp_path / "config", {"token": "a", field: value})])


def test_the_token_of_a_file_comes_first(tmp_path: Path) -> None:
    """As with client-go."""
    (tmp_path / "token").write_text("a")
    assert authorization([tmp_path / "config"], {"token": "b", "tokenFile": "token"}) == "Bearer a"


def test_paths_are_relative_to_the_file_of_their_entry(tmp_path: Path) -> None:
    """Whichever file has the context, and from whichever folder the command runs."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "token").write_text(folder)
    files = [tmp_path / "a" / "config", tmp_path / "b" / "config"]
    write(files[1], {"tokenFile": "token"})
    assert authorization(files, {"tokenFile": "token"}) == "Bearer a"


def test_a_plugin_is_run_from_the_folder_of_its_file(tmp_path: Path) -> None:
    """A command without a slash is searched for in PATH."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "b"},
    }
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    plugin.chmod(0o700)
    use = {"apiVersion": credential["apiVersion"], "command": "./plugin", "interactiveMode": "Never"}
    assert authorization([tmp_path / "config"], {"exec": use}) == "Bearer b"


def test_odd_times_of_a_plugin_are_no_credentials(tmp_path: Path) -> None:
    """Go's zero time: the package subtracts five minutes from it before each request."""
    credential = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": "b", "expirationTimestamp": "0001-01-01T00:00:00Z"},
    }
    use = {"apiVersion": credential["apiVersion"], "command": "echo", "args": [json.dumps(credential)]}
    path = write(tmp_path / "config", {"exec": {**use, "interactiveMode": "Never"}})
    client = read_kubeconfig([path]).client("test")
    with pytest.raises(Unauthorized, match="no new credentials"):
        client.raw("GET", "/version")


def test_a_file_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    """It separates files in the variable KUBECONFIG only."""
    assert authorization([tmp_path / "a:b"], {"token": "a"}) == "Bearer a"


@pytest.mark.thorough
def test_thousands_of_entries_in_two_files_take_little_time(tmp_path: Path) -> None:
    """The package searched its list for each entry of the second file: 90 s for 25,000 in each."""
    files = [write(tmp_path / name, {"token": "a"}) for name in "ab"]
    for file in files:
        users = "".join(f"- name: {file.name}{number}\n" for number in range(25_000))
        file.write_text(file.read_text() + users)
    before = time.process_time()
    read_kubeconfig(files).client("test")
    assert time.process_time() - before < 10


def test_the_variable_lists_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for commands: those that do not exist are skipped, and `~` is the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "config", {"token": "a"}, "http://127.0.0.1:2")
    assert client_of(os.pathsep.join(["~/none", "", "~/config"])).url == "http://127.0.0.1:2"


@pytest.mark.parametrize("value", ["none", os.pathsep, "a" * 300], ids=["no file", "no name", "a long name"])
def test_files_that_cannot_be_read_are_one_error(value: str) -> None:
    """Functions print it and end."""
    with pytest.raises(BadKubeconfigError) as refused:
        client_of(value)
    assert "\n" not in str(refused.value)


def test_a_written_context_is_read_as_it_was(tmp_path: Path) -> None:
    """Its credentials, namespace and paths, with any characters."""
    characters = '\x7f\x85\u2028\ufeff\U0001f600\t"\\é/'
    user = {"token": characters, "exec": {"command": "./a", "args": ["1", 2, None]}, "extensions": [{}]}
    first = read_kubeconfig([write(tmp_path / "a" / "config", user)])
    copy = tmp_path / "copy"
    copy.write_text(first.text)
    second = read_kubeconfig([copy])
    assert "extensions" not in second.user
    assert ({**second.user, "extensions": [{}]}, second.cluster) == (first.user, first.cluster)
    assert (second.context, second.namespace, second.plugin) == ("here", "default", str(tmp_path / "a" / "a"))


@pytest.mark.parametrize("skip", [True, False])
def test_all_connections_take_the_same_certificates(tmp_path: Path, *, skip: bool) -> None:
    """Loaded for each of 490 watches, a megabyte of certificates took 1.5 GB."""
    path = write(tmp_path / "config", {}, "https://example.com")
    content = yaml.safe_load(path.read_text())
    cluster = content["clusters"][0]["cluster"]
    if skip:
        cluster["insecure-skip-tls-verify"] = True
    else:
        cluster |= {"certificate-authority": certifi.where(), "proxy-url": "https://127.0.0.1:2"}
    path.write_text(yaml.safe_dump(content))
    pool: Any = read_kubeconfig([path]).client("test")._connections._pool
    first, second = (pool._new_conn() for _ in range(2))
    assert first.ssl_context is second.ssl_context
    assert first.ssl_context.verify_mode == (ssl.CERT_NONE if skip else ssl.CERT_REQUIRED)
    assert (first.ssl_context.cert_store_stats()["x509_ca"] > 100) or skip
    assert (first.ca_certs, first.cert_file) == (None, None)
    assert skip or first.proxy_config.ssl_context is first.ssl_context


@pytest.mark.parametrize(
    ("of", "field", "value"),
    [
        ("cluster", "tls-server-name", 5),
        ("cluster", "tls-server-name", "a\0b"),
        ("cluster", "tls-server-name", ".."),
        ("cluster", "tls-server-name", "a" * 64),
        ("cluster", "insecure-skip-tls-verify", "false"),
        ("cluster", "insecure-skip-tls-verify", 1),
        ("cluster", "certificate-authority", ["a"]),
        ("cluster", "proxy-url", 5),
        ("cluster", "proxy-url", "socks5://127.0.0.1:1"),
        ("user", "token", 5),
        ("user", "client-key-data", {"a": "b"}),
    ],
)
def test_fields_of_other_types_are_refused(tmp_path: Path, of: str, field: str, value: Any) -> None:
    """By kubectl too; the package took the text "false" for true, and others ended a command as a bug."""
    path = write(tmp_path / "config", {}, "https://127.0.0.1:1")
    content = yaml.safe_load(path.read_text())
    content[f"{of}s"][0][of][field] = value
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(BadKubeconfigError, match=f"context 'here': {field} "):
        read_kubeconfig([path])


@pytest.mark.parametrize("name", ["a", "a-b.example.com.", "a_b", "10.0.0.1", "::1", "", None])
def test_the_name_of_a_server_is_a_host_name_or_an_address(tmp_path: Path, name: Any) -> None:
    """As the `ssl` module takes them; without one the host of the server counts."""
    path = write(tmp_path / "config", {}, "https://127.0.0.1:1")
    content = yaml.safe_load(path.read_text())
    content["clusters"][0]["cluster"]["tls-server-name"] = name
    path.write_text(yaml.safe_dump(content))
    assert read_kubeconfig([path]).client("test")


def test_a_file_with_a_long_name_is_no_certificate(tmp_path: Path) -> None:
    """The error names it."""
    path = write(tmp_path / "config", {"client-certificate": "a" * 300})
    with pytest.raises(BadKubeconfigError, match=r"client-certificate .*: File name too long"):
        read_kubeconfig([path])

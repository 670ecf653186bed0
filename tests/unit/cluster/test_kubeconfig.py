"""Kubeconfigs: which context of which file, its credentials, and one line about one that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cluster.kubeconfig import BadKubeconfigError, client_of, read_kubeconfig
from tests.unit.cluster.scripted import ScriptedResponse, serving

CREDENTIAL = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "kind": "ExecCredential",
    "status": {"token": "a"},
}
PLUGIN = {
    "apiVersion": CREDENTIAL["apiVersion"],
    "command": "echo",
    "args": [json.dumps(CREDENTIAL)],
    "interactiveMode": "Never",
}


def write(path: Path, user: dict[str, Any], server: str = "http://127.0.0.1:1", name: str = "here") -> Path:
    """Write a kubeconfig with one context."""
    config = {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"of-{name}"}}],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": user}],
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_credentials_of_a_plugin_are_sent(tmp_path: Path) -> None:
    """As kubectl sends them."""
    with serving(ScriptedResponse(body={})) as server:
        client_of(str(write(tmp_path / "config", {"exec": PLUGIN}, server.url))).raw("GET", "/version")
    assert server.requests[0].headers["authorization"] == "Bearer a"


@pytest.mark.parametrize(
    ("text", "context", "told"),
    [
        pytest.param(None, "", "No such file", id="no file"),
        pytest.param("", "", "empty", id="an empty file"),
        pytest.param("{", "", "expected", id="no YAML"),
        pytest.param("contexts: []", "there", "there", id="no such context"),
    ],
)
def test_one_that_cannot_be_used_is_one_line(
    tmp_path: Path, text: str | None, context: str, told: str
) -> None:
    """It names the file."""
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadKubeconfigError, match=told) as caught:
        read_kubeconfig(str(path), context).client()
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)

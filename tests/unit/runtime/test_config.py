"""Settings are read from the environment, and an error names the variable."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from muster.runtime.config import BadSettingError, Settings, connect, from_environment, own_namespace

EVERY = {
    "MUSTER_LOG_LEVEL": "debug",
    "MUSTER_RETRY_AFTER_SECONDS": "2.5",
    "MUSTER_BODY_LIMIT_BYTES": "1024",
    "MUSTER_BODY_LIMIT_VALUES": "500",
    "MUSTER_BODY_SECONDS": "1.5",
    "MUSTER_BODIES_LIMIT_BYTES": "4096",
    "MUSTER_CONNECTION_LIMIT": "20",
    "MUSTER_HEADER_LIMIT": "50",
    "MUSTER_ATTRIBUTE_LIMIT": "256",
    "MUSTER_DEADLINE_SECONDS": "3",
    "MUSTER_SWEEP_LIMIT": "10",
    "MUSTER_SWEEP_JITTER_SECONDS": "0",
    "MUSTER_WORKERS": "8",
    "MUSTER_MOST_IN_WORK": "9",
    "MUSTER_API_SERVER": "http://127.0.0.1:8001",
    "KUBECONFIG": "/root/.kube/config",
    "MUSTER_CLUSTER_NAME": "eu-1",
    "MUSTER_NAMESPACE": "team-a",
    "MUSTER_TRACES": "otlp",
    "MUSTER_DEAD_LETTER_LIMIT": "5",
    "MUSTER_DEAD_LETTER_LIMIT_BYTES": "2048",
    "MUSTER_DEAD_LETTER_NAMESPACE": "letters",
    "MUSTER_POLICY_NAMESPACE": "administration",
    "MUSTER_WAITING": "3",
    "PATH": "/bin",
}


def test_defaults_need_no_environment() -> None:
    """Nothing set means the defaults; an empty variable is as good as none."""
    assert from_environment({}) == Settings()
    assert from_environment({"MUSTER_WORKERS": "", "KUBECONFIG": ""}) == Settings()


def test_every_setting_can_be_set() -> None:
    """Each setting has its variable: MUSTER_ and its name, but KUBECONFIG as everywhere."""
    assert from_environment(EVERY) == Settings(
        log_level="DEBUG",
        retry_after_seconds=2.5,
        body_limit_bytes=1024,
        body_limit_values=500,
        body_seconds=1.5,
        bodies_limit_bytes=4096,
        connection_limit=20,
        header_limit=50,
        attribute_limit=256,
        deadline_seconds=3.0,
        sweep_limit=10,
        sweep_jitter_seconds=0.0,
        workers=8,
        most_in_work=9,
        waiting=3,
        api_server="http://127.0.0.1:8001",
        kubeconfig="/root/.kube/config",
        cluster_name="eu-1",
        namespace="team-a",
        policy_namespace="administration",
        traces="otlp",
        dead_letter_limit=5,
        dead_letter_limit_bytes=2048,
        dead_letter_namespace="letters",
    )


def test_no_setting_is_left_out() -> None:
    """The case above has every setting, with a value that is not its default."""
    changed = from_environment(EVERY)
    same = {field.name for field in fields(Settings) if getattr(changed, field.name) == field.default}
    assert same == set()


def test_a_pod_knows_its_namespace(tmp_path: Path) -> None:
    """The file that every service account's volume has; elsewhere Muster's usual namespace."""
    assert own_namespace(tmp_path) == "muster-system"
    (tmp_path / "namespace").write_text("team-a\n")
    assert own_namespace(tmp_path) == "team-a"


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("MUSTER_WORKERS", "many"),
        ("MUSTER_WORKERS", "2.5"),
        ("MUSTER_SWEEP_LIMIT", "0"),
        ("MUSTER_DEADLINE_SECONDS", "-1"),
        ("MUSTER_DEADLINE_SECONDS", "inf"),
        ("MUSTER_DEADLINE_SECONDS", "nan"),
        ("MUSTER_LOG_LEVEL", "loud"),
    ],
)
def test_bad_value_is_named(variable: str, text: str) -> None:
    """A value that cannot be used is refused with its variable, at the start."""
    with pytest.raises(BadSettingError) as refused:
        from_environment({variable: text})
    assert variable in str(refused.value)
    assert text in str(refused.value)


def test_no_cluster_names_the_variables_to_set() -> None:
    """Outside of a pod and without a URL or kubeconfig there is no cluster to guess."""
    with pytest.raises(BadSettingError) as refused:
        connect(Settings(), environment={})
    assert "MUSTER_API_SERVER" in str(refused.value)
    assert "KUBECONFIG" in str(refused.value)


def test_url_wins_over_kubeconfig(tmp_path: Path) -> None:
    """The local stack's API server is used whatever KUBECONFIG the shell has, even one without a file."""
    connect(Settings(api_server="http://127.0.0.1:1", kubeconfig=str(tmp_path / "none")), environment={})


@pytest.mark.parametrize("content", [None, "", "a: [1\n", "just words"])
def test_a_bad_kubeconfig_is_a_bad_setting(tmp_path: Path, content: str | None) -> None:
    """In one line, with the variable and the file, for a function that ends with it."""
    file = tmp_path / "config"
    if content is not None:
        file.write_text(content)
    with pytest.raises(BadSettingError) as refused:
        connect(Settings(kubeconfig=str(file)), environment={})
    assert str(refused.value).startswith(f"KUBECONFIG: {file}")
    assert "\n" not in str(refused.value)


def test_kubeconfig(tmp_path: Path) -> None:
    """A kubeconfig file names the cluster."""
    file = tmp_path / "config"
    file.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " contexts: [{name: c, context: {cluster: k, user: u}}],"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}"
    )
    connect(Settings(kubeconfig=str(file)), environment={})

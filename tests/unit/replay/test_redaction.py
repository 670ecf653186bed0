"""Redaction keeps the shape of an object and removes every value that can be secret."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from muster.replay.redaction import LEFT_OUT, is_secret, redact_runtime_snapshot, without_secrets

CONTAINER = {
    "name": "main",
    "image": "example.com/train",
    "command": ["sh", "-c", "train --token hunter2"],
    "args": ["--password=hunter2"],
    "env": [
        {"name": "HF_TOKEN", "value": "hunter2"},
        {"name": "EMPTY", "value": ""},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}},
    ],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "Bearer hunter2"}]}},
    "readinessProbe": {"exec": {"command": ["check", "hunter2"]}},
}
CLEAN = {
    "name": "main",
    "image": "example.com/train",
    "command": [LEFT_OUT] * 3,
    "args": [LEFT_OUT],
    "env": [
        {"name": "HF_TOKEN", "value": LEFT_OUT},
        {"name": "EMPTY", "value": ""},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}},
    ],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": LEFT_OUT}]}},
    "readinessProbe": {"exec": {"command": [LEFT_OUT] * 2}},
}


def a_job(**annotations: str) -> dict[str, Any]:
    """A Job with one container, as `kubectl apply` leaves it."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "sweep",
            "uid": "1",
            "resourceVersion": "7",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2", **annotations},
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"template": {"spec": {"containers": [CONTAINER]}}},
    }


def test_redaction_keeps_the_shape_and_removes_secret_values() -> None:
    """Values of variables and headers, words of commands, the applied object, managedFields; nothing else."""
    job = a_job(**{"muster.dev/gate": "off"})
    before = copy.deepcopy(job)
    cleaned = without_secrets(job)
    assert job == before
    assert cleaned["metadata"] == {
        "name": "sweep",
        "uid": "1",
        "resourceVersion": "7",
        "annotations": {"muster.dev/gate": "off"},
    }
    assert cleaned["spec"]["template"]["spec"]["containers"] == [CLEAN]
    assert "hunter2" not in json.dumps(cleaned)


def test_passwords_attributes_of_volumes_and_last_words_are_removed() -> None:
    """The type of each field stays."""
    body = {
        "storageUri": "s3://user:hunter2@store/model",
        "plain": "https://example.com/a:b@c",
        "csi": {"driver": "example.com", "volumeAttributes": {"token": "hunter2"}},
        "lastState": {"terminated": {"exitCode": 1, "message": "hunter2"}},
    }
    assert without_secrets(body) == {
        "storageUri": f"s3://{LEFT_OUT}@store/model",
        "plain": "https://example.com/a:b@c",
        "csi": {"driver": "example.com", "volumeAttributes": {"token": LEFT_OUT}},
        "lastState": {"terminated": {"exitCode": 1, "message": LEFT_OUT}},
    }


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        pytest.param("https://hunter2@store/model", f"https://{LEFT_OUT}@store/model", id="a token"),
        pytest.param("https://me:hunt@er2@store", f"https://{LEFT_OUT}@store", id="an @ in the password"),
        pytest.param("docker-pullable://a@sha256:0d17", "docker-pullable://a@sha256:0d17", id="a digest"),
        pytest.param("https://store/me@store", "https://store/me@store", id="an @ in the path"),
        pytest.param("https://store/model?sig=hunter2&a=b", f"https://store/model?{LEFT_OUT}", id="a query"),
        pytest.param(
            "https://me:hunter2@store/model?sig=hunter2",
            f"https://{LEFT_OUT}@store/model?{LEFT_OUT}",
            id="a login and a query",
        ),
    ],
)
def test_logins_in_urls_are_removed_in_annotations_too(text: str, cleaned: str) -> None:
    """Up to the last @ before the path; JSON stays JSON."""
    body = {"image": text, "metadata": {"annotations": {"example.com/source": text}}}
    assert without_secrets(body) == {
        "image": cleaned,
        "metadata": {"annotations": {"example.com/source": cleaned}},
    }


def test_a_list_of_secrets_loses_its_items() -> None:
    """Their kinds are not in a list."""
    secrets = {"apiVersion": "v1", "kind": "SecretList", "items": [{"data": {"k": "hunter2"}}]}
    assert without_secrets(secrets) == {"apiVersion": "v1", "kind": "SecretList"}


def test_a_secret_inside_another_object_loses_its_data() -> None:
    """Objects that carry manifests may carry Secrets."""
    inner = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"k": "hunter2"}}
    assert without_secrets({"manifests": [inner]}) == {
        "manifests": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}]
    }


@pytest.mark.parametrize(
    ("obj", "secret"),
    [
        pytest.param({"apiVersion": "v1", "kind": "Secret"}, True, id="a Secret"),
        pytest.param({"apiVersion": "v1", "kind": "SECRET"}, True, id="a Secret in capitals"),
        pytest.param({"kind": "Secret"}, True, id="a Secret that does not say its version"),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Secret"}, False, id="a Secret of another group"
        ),
        pytest.param({"apiVersion": "v1", "kind": "Pod"}, False, id="a Pod"),
        pytest.param({"apiVersion": "v1", "kind": ["Secret"]}, False, id="of a kind that is no text"),
    ],
)
def test_only_the_core_kind_secret_is_a_secret(obj: dict[str, Any], secret: bool) -> None:
    """The core group's kind, and only that."""
    assert is_secret(obj) == secret


def test_the_runtime_that_the_trainer_kept_is_cleaned_as_text() -> None:
    """It holds a whole runtime, environment included; what cannot be read cannot be cleaned."""
    assert yaml.safe_load(redact_runtime_snapshot(yaml.safe_dump(a_job()))) == without_secrets(a_job())
    assert redact_runtime_snapshot("a: [hunter2") == LEFT_OUT

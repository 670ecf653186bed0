"""Redaction keeps the shape of an object and removes every value that can be secret."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from muster.objects import yaml_files
from muster.replay.recording.redaction import LEFT_OUT, is_secret, redact_runtime_snapshot, without_secrets
from tests.support import cpu

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


def test_the_trainers_own_fields_are_cleaned_too() -> None:
    """A TrainJob has env and args outside of any container; fields of these names with other types stay."""
    spec = {"trainer": {"numNodes": 2, "env": [{"name": "A", "value": "x"}], "args": ["x"]}, "env": "prod"}
    assert without_secrets(spec) == {
        "trainer": {"numNodes": 2, "env": [{"name": "A", "value": LEFT_OUT}], "args": [LEFT_OUT]},
        "env": "prod",
    }


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


def test_options_of_volumes_are_removed() -> None:
    """A FlexVolume has them in place of attributes; other fields of this name stay."""
    volume = {"driver": "example.com/nfs", "options": {"password": "hunter2"}}
    pod = {"volumes": [{"flexVolume": volume}], "dnsConfig": {"options": [{"name": "ndots"}]}}
    assert without_secrets(pod) == {
        "volumes": [{"flexVolume": {"driver": "example.com/nfs", "options": {"password": LEFT_OUT}}}],
        "dnsConfig": {"options": [{"name": "ndots"}]},
    }


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        pytest.param("https://hunter2@store/model", f"https://{LEFT_OUT}@store/model", id="a token"),
        pytest.param("https://me:hunt@er2@store", f"https://{LEFT_OUT}@store", id="an @ in the password"),
        pytest.param(
            json.dumps({"from": "https://me:hunter2@store", "to": "https://store", "mail": "me@store"}),
            json.dumps({"from": f"https://{LEFT_OUT}@store", "to": "https://store", "mail": "me@store"}),
            id="JSON",
        ),
        pytest.param(
            "https://a:hunter2@b https://hunter2@c",
            f"https://{LEFT_OUT}@b https://{LEFT_OUT}@c",
            id="two URLs",
        ),
        pytest.param("docker-pullable://a@sha256:0d17", "docker-pullable://a@sha256:0d17", id="a digest"),
        pytest.param("https://store/me@store", "https://store/me@store", id="an @ in the path"),
        pytest.param("https://store/model?sig=hunter2&a=b", f"https://store/model?{LEFT_OUT}", id="a query"),
        pytest.param(
            "https://me:hunter2@store/model?sig=hunter2",
            f"https://{LEFT_OUT}@store/model?{LEFT_OUT}",
            id="a login and a query",
        ),
        pytest.param("https://me:hunt?er2@store", f"https://{LEFT_OUT}@store", id="a ? in the password"),
    ],
)
def test_logins_in_urls_are_removed_in_annotations_too(text: str, cleaned: str) -> None:
    """Up to the last @ before the path; JSON stays JSON."""
    body = {"image": text, "metadata": {"annotations": {"example.com/source": text}}}
    assert without_secrets(body) == {
        "image": cleaned,
        "metadata": {"annotations": {"example.com/source": cleaned}},
    }


@pytest.mark.parametrize("repeated", [":", "://", "://a@sha256:", "a@sha256:", "@", "://a?", "?", "://a@b?"])
def test_the_time_of_a_text_is_linear(repeated: str) -> None:
    """One Job with a text of 250,000 colons would keep the recording of all namespaces for hours."""
    text = "://" + repeated * (250_000 // len(repeated))
    with cpu.at_most(2):
        without_secrets(text)


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


@pytest.mark.parametrize("text", [json.dumps(a_job()), yaml.safe_dump(a_job())], ids=["JSON", "YAML"])
def test_the_runtime_that_the_trainer_kept_is_cleaned_as_text(text: str) -> None:
    """It holds a whole runtime, environment included."""
    cleaned = yaml_files.load(redact_runtime_snapshot(text))
    assert cleaned == without_secrets(a_job())


def test_a_runtime_that_cannot_be_read_is_left_out() -> None:
    """What cannot be looked into cannot be cleaned."""
    assert redact_runtime_snapshot("a: [hunter2") == LEFT_OUT


def test_a_snapshot_with_aliases_is_left_out() -> None:
    """Anyone with edit in a namespace can write it, and 456 bytes of aliases become a gigabyte."""
    levels = [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 8)}]" for level in range(1, 12)]
    assert redact_runtime_snapshot("\n".join(["a0: &a0 [x]", *levels])) == LEFT_OUT

"""Redaction keeps the shape of an object and removes every value that can be secret."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from muster.replay.redaction import LEFT_OUT, redact_runtime_snapshot, without_secrets

ENV = [
    {"name": "EMPTY", "value": ""},
    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}},
]
CONTAINER = {
    "image": "example.com/train",
    "command": ["sh", "-c", "train --token hunter2"],
    "env": [{"name": "HF_TOKEN", "value": "hunter2"}, *ENV],
    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "Bearer hunter2"}]}},
    "readinessProbe": {"exec": {"command": ["check", "hunter2"]}},
}
CLEAN = {
    "image": "example.com/train",
    "command": [LEFT_OUT] * 3,
    "env": [{"name": "HF_TOKEN", "value": LEFT_OUT}, *ENV],
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


@pytest.mark.parametrize(
    ("field", "value", "cleaned"),
    [
        ("uri", "s3://user:hunter2@store/model", f"s3://{LEFT_OUT}@store/model"),
        ("image", "https://hunt@er2@store", f"https://{LEFT_OUT}@store"),
        ("image", "docker-pullable://a@sha256:0d17", "docker-pullable://a@sha256:0d17"),
        ("image", "https://store/me@store", "https://store/me@store"),
        ("image", "https://me:a@store/b?sig=a", f"https://{LEFT_OUT}@store/b?{LEFT_OUT}"),
        ("annotations", {"a": "https://store/b?sig=a"}, {"a": f"https://store/b?{LEFT_OUT}"}),
        ("csi", {"volumeAttributes": {"token": "a"}}, {"volumeAttributes": {"token": LEFT_OUT}}),
        ("terminated", {"exitCode": 1, "message": "a"}, {"exitCode": 1, "message": LEFT_OUT}),
    ],
)
def test_values_that_can_be_secret_are_removed(field: str, value: Any, cleaned: Any) -> None:
    """Logins and queries of URLs, attributes of volumes, last words; types stay."""
    assert without_secrets({field: value}) == {field: cleaned}


def test_the_runtime_that_the_trainer_kept_is_cleaned_as_text() -> None:
    """It holds a whole runtime, environment included; what cannot be read cannot be cleaned."""
    assert yaml.safe_load(redact_runtime_snapshot(yaml.safe_dump(a_job()))) == without_secrets(a_job())
    assert redact_runtime_snapshot("a: [hunter2") == LEFT_OUT

"""Events that every function refuses, and which so become dead letters."""

from __future__ import annotations

import json
from typing import Any

from muster.simulator.broker import CloudEvent


def nonsense(
    number: int, kind: str = "TrainingRuntime", apiversion: str = "trainer.kubeflow.org/v1alpha1"
) -> CloudEvent:
    """Return an unreadable event; by default about a TrainingRuntime, which only mark-runtime receives."""
    attributes = {
        "specversion": "1.0",
        "id": f"nonsense-{number}",
        "source": "/tests",
        "type": "dev.knative.apiserver.resource.add",
        "apiversion": apiversion,
        "kind": kind,
        "datacontenttype": "application/json",
    }
    return CloudEvent(attributes, b'{"spec": 7}')


def with_wrong_type(obj: dict[str, Any]) -> CloudEvent:
    """Return an update of an object, in Resource mode, whose `spec.parallelism` is a word."""
    attributes = {
        "specversion": "1.0",
        "id": "wrong-type",
        "source": "/tests",
        "type": "dev.knative.apiserver.resource.update",
        "apiversion": obj["apiVersion"],
        "kind": obj["kind"],
        "datacontenttype": "application/json",
    }
    changed = {**obj, "spec": {**obj["spec"], "parallelism": "many"}}
    return CloudEvent(attributes, json.dumps(changed).encode())

"""Events that every function refuses, and which so become dead letters."""

from __future__ import annotations

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

"""The Workload that the peers create for a Job: the one that create_workload creates, without a policy."""

from __future__ import annotations

from typing import Any

GROUP = "muster.dev/group"


def workload(name: str, namespace: str, uid: str, group: str, pods: int) -> dict[str, Any]:
    """Return the Workload of a Job whose pods are one gang."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [owner | {"controller": True}],
        },
        "spec": {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
            "podGroupTemplates": [
                {
                    "name": group,
                    "schedulingPolicy": {"gang": {"minCount": pods}},
                    "disruptionMode": {"all": {}},
                }
            ],
        },
    }

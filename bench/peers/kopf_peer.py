"""create_workload as an operator in kopf: `kopf run kopf_peer.py --namespace NAME`.

As kopf's documentation has it: a handler for creation and resumption, an in-memory index of the other kind
instead of lists, and the `kubernetes` client for the write. It knows neither policies nor TrainJobs.
"""

from __future__ import annotations

from typing import Any

import kopf
import kubernetes

from bench.peers.manifest import GROUP, workload


@kopf.on.startup()
def connect(settings: kopf.OperatorSettings, **_: Any) -> None:
    """Connect the client, and post no Events about each handler."""
    kubernetes.config.load_kube_config()
    settings.posting.enabled = False


@kopf.index("scheduling.k8s.io", "v1beta1", "workloads")
def workloads(namespace: str, spec: kopf.Spec, name: str, **_: Any) -> dict[tuple[str, str], str]:
    """Index Workloads by the Job that they name."""
    return {(namespace, spec.get("controllerRef", {}).get("name", "")): name}


def _marked(spec: kopf.Spec, **_: Any) -> bool:
    return GROUP in spec.get("template", {}).get("metadata", {}).get("labels", {})


@kopf.on.resume("batch", "v1", "jobs", when=_marked)
@kopf.on.create("batch", "v1", "jobs", when=_marked)
def create_workload(
    name: str, namespace: str, uid: str, spec: kopf.Spec, workloads: kopf.Index[Any, str], **_: Any
) -> None:
    """Create the Workload of a Job that has none."""
    if (namespace, name) in workloads:
        return
    group = spec["template"]["metadata"]["labels"][GROUP]
    body = workload(name, namespace, uid, group, spec["parallelism"])
    try:
        kubernetes.client.SchedulingV1beta1Api().create_namespaced_workload(namespace, body)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise

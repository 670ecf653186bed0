"""Runtimes with a policy annotation, and the labels that mark-runtime writes on them."""

from __future__ import annotations

from tests.cluster.api import KubernetesApi
from tests.e2e.support.owners import Object

POLICY = "muster.dev/pod-group-policy"
_SHIPPED = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


def a_runtime(
    api: KubernetesApi,
    name: str,
    policy: str = "",
    *,
    kind: str = "TrainingRuntime",
    like: str = "torch-distributed",
) -> Object:
    """Return a copy of a shipped runtime under another name, with a policy."""
    shipped = api.must("GET", f"{_SHIPPED}/{like}")
    annotations = {POLICY: policy} if policy else {}
    metadata = {"name": name, "labels": shipped["metadata"]["labels"], "annotations": annotations}
    return {**shipped, "kind": kind, "metadata": metadata}


def template_labels(runtime: Object) -> dict[str, str]:
    """Return Muster's labels on the pod template of a runtime's first replicatedJob."""
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {key: value for key, value in labels.items() if key.startswith("muster.dev/")}

"""Builders of the Jobs, JobSets, TrainJobs and runtimes that stories create."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import KubernetesApi

Object = dict[str, Any]

POLICY = "muster.dev/pod-group-policy"
_SHIPPED = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


def with_policy(owner: Object, policy: str) -> Object:
    """Return the owner with a policy on it."""
    return {**owner, "metadata": {**owner["metadata"], "annotations": {POLICY: policy}}}


def a_job(
    name: str, *, pods: int, cpu: int = 1, suspend: bool = False, labels: dict[str, str] | None = None
) -> Object:
    """Return an Indexed Job whose pods all run at once; `labels` are those of its pod template."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 20,
            "suspend": suspend,
            "template": _template(cpu, labels or {}),
        },
    }


def a_jobset(
    name: str,
    replicated_jobs: dict[str, tuple[int, int]],
    *,
    cpu: int = 1,
    max_restarts: int = 0,
    apart: bool = False,
) -> Object:
    """Return a JobSet; `replicated_jobs` are (Jobs, pods of each Job) by name; `apart`: labelled by it."""
    jobs = [
        {
            "name": job,
            "replicas": replicas,
            "template": {
                "spec": {
                    "completionMode": "Indexed",
                    "parallelism": pods,
                    "completions": pods,
                    "backoffLimit": 0,
                    "template": _template(cpu, {"muster.dev/group": job} if apart else {}),
                }
            },
        }
        for job, (replicas, pods) in replicated_jobs.items()
    ]
    spec: Object = {"replicatedJobs": jobs, "failurePolicy": {"maxRestarts": max_restarts}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": spec,
    }


def a_trainjob(
    name: str, runtime: str, *, nodes: int, cpu: int = 1, kind: str = "ClusterTrainingRuntime", **spec: Any
) -> Object:
    """Return a TrainJob on a runtime, by default a ClusterTrainingRuntime that the Trainer ships."""
    resources = {"requests": {"cpu": str(cpu)}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": runtime, "kind": kind},
            "trainer": {"numNodes": nodes, "resourcesPerNode": resources},
            **spec,
        },
    }


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
    """Return the labels on the pod template of a runtime's first replicatedJob."""
    template = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels: dict[str, str] = (template.get("metadata") or {}).get("labels") or {}
    return labels


def _template(cpu: int, labels: dict[str, str]) -> Object:
    container = {"name": "main", "image": "example.com/train", "resources": {"requests": {"cpu": str(cpu)}}}
    return {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}

"""Check the versions, feature gates and kinds of a cluster; objects are created as a dry run only."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muster.cluster.errors import MESSAGE_LIMIT, ClusterError
from muster.cluster.http.answers import mapping_of
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, RawCluster
from muster.cluster.read import collect
from muster.cluster.versioned import Versioned
from muster.objects.resources import (
    JOBS,
    JOBSETS,
    MUTATING_ADMISSION_POLICIES,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.objects.text import cut_to
from muster.objects.versions import GROUP, HOW_TO_SWITCH_ON, choose
from muster.policy.group_labels import NAMESPACE_SWITCH

_KNATIVE = (
    ("eventing.knative.dev", "v1/triggers", "Knative Eventing"),
    ("sources.knative.dev", "v1/apiserversources", "Knative Eventing"),
    ("serving.knative.dev", "v1/services", "Knative Serving"),
)
_JOB_KINDS = ((JOBSETS, "JobSet", "jobsets"), (TRAINJOBS, "the Trainer", "trainjobs"))
_OK, _CREATED = 200, 201

# Passes the restricted Pod Security Standard and the admission of ResourceQuotas.
_POD_SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "automountServiceAccountToken": False,
    "containers": [
        {
            "name": "main",
            "image": "muster/never-pulled",
            "resources": {"limits": {"cpu": "1m", "memory": "1Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        }
    ],
}


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    """Nothing to do."""
    WARN = "warn"
    """A feature will not work or could not be checked; everything else does."""
    FAIL = "FAIL"
    """Gangs will not be scheduled until this is repaired."""


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        level: the severity.
        about: what was checked.
        message: the state, and how to repair it.
    """

    level: Level
    about: str
    message: str


def first_names(names: list[str], limit: int = 10) -> str:
    """Return the first names of a list and the number of the others, as text."""
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def opted_in(cluster: RawCluster) -> list[str]:
    """Return the names of the namespaces in which Jobs get group labels."""
    return sorted(collect(cluster, NAMESPACES, _names, labels=f"{NAMESPACE_SWITCH}=enabled"))


def _names(bodies: Iterable[Object]) -> Iterator[str]:
    return (body["metadata"]["name"] for body in bodies)


def check_cluster(client: Client, namespace: str) -> Iterator[Finding]:
    """Yield findings about what a cluster must have before Muster is installed.

    Args:
        client: of the cluster.
        namespace: where a pod and a Job are created as a dry run.

    Raises:
        ClusterError: the API server does not answer, or refuses discovery.
    """
    yield from _scheduling_api(client, namespace)
    yield _admission_policies(client)
    if choose(client.served_versions(GROUP)).groups_plain_jobs:
        yield _workload_with_job_1_36(client)
    else:
        yield _workload_with_job(client, namespace)
    for resource, name, source in _JOB_KINDS:
        yield _job_kind(client, resource, name, source)
    for group, kind, name in _KNATIVE:
        if kind in client.served_versions(group):
            yield Finding(Level.OK, name, f"{group}/{kind} is served")
        else:
            yield Finding(
                Level.FAIL,
                name,
                f"{group}/{kind} is not served: install {name}; to try without it: muster run --kubeconfig",
            )


def _scheduling_api(client: Client, namespace: str) -> Iterator[Finding]:
    api = choose(client.served_versions(GROUP))
    if not api.served:
        yield Finding(Level.FAIL, "scheduling API", HOW_TO_SWITCH_ON)
        return
    yield Finding(Level.OK, "scheduling API", f"{GROUP}/{api.version} serves Workloads and PodGroups")
    if not api.resizable:
        yield Finding(
            Level.WARN, "minCount", f"cannot change in {api.version}: a gang keeps its size (GangSizeFixed)"
        )
    if api.composites:
        yield Finding(Level.OK, "CompositePodGroup", "is served: policies may nest groups")
    else:
        yield Finding(
            Level.WARN,
            "CompositePodGroup",
            "is not served: a policy with nested groups is invalid here (gate CompositePodGroup, "
            f"runtime-config {GROUP}/v1alpha3=true, Kubernetes 1.37)",
        )
    yield _stored_groups(client)
    yield _scheduling_group_field(client, namespace)


def _nothing_of(bodies: Iterable[Object]) -> Iterator[Object]:
    """Yield nothing, after all objects were read."""
    deque(bodies, maxlen=0)
    yield from ()


def _stored_groups(client: Client) -> Finding:
    """Check that Workloads and PodGroups can be listed.

    An object that an older release stored in an API version unknown to this release fails every list of its
    kind, and so every informer, kube-scheduler's too.
    """
    about = "stored groups"
    cluster = Versioned(client)
    try:
        for resource in (WORKLOADS, POD_GROUPS):
            collect(cluster, resource, _nothing_of)
    except ClusterError as error:
        if "is registered for version" not in error.message:
            return Finding(Level.WARN, about, f"cannot be listed: {error.message}")
        return Finding(
            Level.FAIL,
            about,
            "an older Kubernetes stored some that this one cannot read, so it lists none and places no pod: "
            f"docs/install.md, step 7; {error.message}",
        )
    return Finding(Level.OK, about, "Workloads and PodGroups can be listed")


def _scheduling_group_field(client: Client, namespace: str) -> Finding:
    about = "pod.spec.schedulingGroup"
    spec = {**_POD_SPEC, "schedulingGroup": {"podGroupName": "muster-check"}}
    stored, error = _dry_run(client, PODS, namespace, spec)
    if error:
        return Finding(Level.WARN, about, error)
    if "schedulingGroup" in stored:
        return Finding(
            Level.OK,
            about,
            "is kept by the API server; whether kube-scheduler and kube-controller-manager have the same "
            "gates, no API shows",
        )
    return Finding(Level.FAIL, about, f"is dropped by the API server: {HOW_TO_SWITCH_ON}")


def _admission_policies(client: Client) -> Finding:
    resource = MUTATING_ADMISSION_POLICIES
    if f"{resource.version}/{resource.plural}" in client.served_versions(resource.group):
        return Finding(Level.OK, "admission policies", f"{resource.api_version} is served")
    return Finding(
        Level.FAIL,
        "admission policies",
        f"{resource.api_version} {resource.kind} is not served: Kubernetes 1.36 or later is needed",
    )


def _workload_with_job(client: Client, namespace: str) -> Finding:
    about = "gate WorkloadWithJob"
    spec = {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "scheduling": {"schedulingPolicy": {"gang": {}}},
        "template": {"spec": _POD_SPEC},
    }
    stored, error = _dry_run(client, JOBS, namespace, spec)
    if error:
        return Finding(Level.WARN, about, error)
    if "scheduling" in stored:
        return Finding(
            Level.OK,
            about,
            "is on: the Job controller groups plain Jobs, Muster all others; "
            "eventing/overlays/native-jobs leaves plain Jobs without group label",
        )
    return Finding(Level.OK, about, "is off: Muster groups plain Jobs too")


def _workload_with_job_1_36(client: Client) -> Finding:
    """Check the gate WorkloadWithJob of 1.36 by the API server's metrics, since 1.36 has no field for it.

    The Job controller of 1.36 has the permission to create groups only if the API server has the gate
    (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/controller_policy.go, v1.36.3).
    """
    about = "gate WorkloadWithJob"
    status, metrics = client.raw("GET", "/metrics")
    if status != _OK:
        message = f"/metrics of the API server answers {status}, so it is unknown; on 1.36 it must be off"
        return Finding(Level.WARN, about, message)
    if re.search(
        r'^kubernetes_feature_enabled\{name="WorkloadWithJob",[^}]*\} 1$', str(metrics), re.MULTILINE
    ):
        return Finding(
            Level.FAIL,
            about,
            "is on: the Job controller of 1.36 makes a gang of every Indexed Job of several pods, each Job "
            "of a JobSet or TrainJob by itself, and has no opt-out: switch it off on kube-apiserver "
            "and kube-controller-manager",
        )
    return Finding(Level.OK, about, "is off, as it must be on 1.36: Muster groups Jobs")


def _job_kind(client: Client, resource: Resource, name: str, source: str) -> Finding:
    if f"{resource.version}/{resource.plural}" in client.served_versions(resource.group):
        return Finding(Level.OK, name, f"{resource.api_version} {resource.kind} is served")
    return Finding(
        Level.WARN,
        name,
        f"{resource.api_version} {resource.kind} is not served: leave eventing/base/sources/{source}.yaml "
        "out, or its adapter restarts again and again",
    )


def _dry_run(client: Client, resource: Resource, namespace: str, spec: Any) -> tuple[dict[str, Any], str]:
    """Return the spec as the API server would store it, and why it refused; exactly one is empty.

    Raises:
        Unavailable: the answer is another object, or none; a proxy may answer anything.
    """
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "muster-check", "namespace": namespace},
        "spec": spec,
    }
    path = resource.path("", namespace)
    status, answer = client.raw("POST", path, query={"dryRun": "All"}, body=body)
    if status == _CREATED:
        return mapping_of(f"POST {path}", answer, "spec"), ""
    message = cut_to(str(answer.get("message", "") if isinstance(answer, dict) else answer), MESSAGE_LIMIT)
    return {}, f"could not be checked by a dry run in namespace {namespace}: {status} {message}"

"""Check whether Muster can run on a cluster, and whether its admission policies are installed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muster.cluster.errors import ApiGone, ClusterError
from muster.cluster.http.client import Client
from muster.cluster.interface import POLICY_NAMESPACE
from muster.cluster.versioned import Versioned
from muster.objects.resources import (
    CONFIGMAPS,
    JOBS,
    JOBSETS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.objects.versions import GROUP, HOW_TO_SWITCH_ON, choose
from muster.policy.group_labels import NAMESPACE_SWITCH
from muster.policy.sources.source import (
    CONFIG_MAP,
    InvalidPolicy,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
)

_KNATIVE = (
    (Resource("eventing.knative.dev", "v1", "triggers", "Trigger"), "Knative Eventing"),
    (Resource("sources.knative.dev", "v1", "apiserversources", "ApiServerSource"), "Knative Eventing"),
    (Resource("serving.knative.dev", "v1", "services", "Service"), "Knative Serving"),
)
_JOB_KINDS = ((JOBSETS, "JobSet"), (TRAINJOBS, "the Trainer"))
_POLICIES = ("muster-mark-jobs", "muster-schedule-jobs", "muster-stamp-pods")
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
_JOB_SPEC = {
    "completionMode": "Indexed",
    "completions": 2,
    "parallelism": 2,
    "scheduling": {"schedulingPolicy": {"gang": {}}},
    "template": {"spec": _POD_SPEC},
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


def check_cluster(client: Client, namespace: str) -> Iterator[Finding]:
    """Yield findings about what a cluster must have before Muster is installed.

    Args:
        client: of the cluster.
        namespace: where a pod and a Job are created as a dry run.

    Raises:
        ClusterError: the API server does not answer, or refuses discovery.
    """
    yield from _scheduling_api(client, namespace)
    policies = MUTATING_ADMISSION_POLICIES
    yield _served(client, policies, "admission policies", Level.FAIL, "Kubernetes 1.36 or later is needed")
    if choose(client.served_versions(GROUP)).groups_plain_jobs:
        yield _workload_with_job_1_36(client)
    else:
        yield _workload_with_job(client, namespace)
    for resource, name in _JOB_KINDS:
        advice = f"leave eventing/base/sources/{resource.plural}.yaml out, or its adapter restarts for ever"
        yield _served(client, resource, name, Level.WARN, advice)
    for resource, name in _KNATIVE:
        advice = f"install {name}; to try without it: muster run --kubeconfig"
        yield _served(client, resource, name, Level.FAIL, advice)


def _served(client: Client, resource: Resource, about: str, level: Level, advice: str) -> Finding:
    """Return a finding whether a kind is served; if not, one of this level with advice."""
    if f"{resource.version}/{resource.plural}" in client.served_versions(resource.group):
        return Finding(Level.OK, about, f"{resource.api_version} {resource.kind} is served")
    return Finding(level, about, f"{resource.api_version} {resource.kind} is not served: {advice}")


def check_installation(client: Client) -> Iterator[Finding]:
    """Yield findings about admission policies, opted-in namespaces and the administrator's policy.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    for resource in (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS):
        missing = [name for name in _POLICIES if not _exists(client, resource, name)]
        about = resource.kind
        if missing:
            message = f"{first_names(missing)} not installed: kubectl apply -k eventing/admission"
            yield Finding(Level.FAIL, about, message)
        else:
            yield Finding(Level.OK, about, "those of Muster are installed")
    enabled = opted_in(client)
    about = f"label {NAMESPACE_SWITCH}"
    if enabled:
        yield Finding(Level.OK, about, f"is on {first_names(enabled)}")
    else:
        message = "is on no namespace: only Jobs whose pod template has a group label are gangs"
        yield Finding(
            Level.WARN, about, f"{message}; kubectl label namespace NAME {NAMESPACE_SWITCH}=enabled"
        )
    yield from _administrators_policy(client)


def opted_in(client: Client) -> list[str]:
    """Return the names of the namespaces in which Jobs get group labels."""
    found = Versioned(client).list(NAMESPACES, labels=f"{NAMESPACE_SWITCH}=enabled")
    return sorted(body["metadata"]["name"] for body in found)


def _administrators_policy(client: Client) -> Iterator[Finding]:
    """Yield what is wrong with the policy and the locked fields for the whole cluster."""
    body = client.get(CONFIGMAPS, CONFIG_MAP, POLICY_NAMESPACE) or {}
    for source in (*source_of_config_map(body, PolicySourceKind.CLUSTER), *locked_fields(body)):
        policy = resolve_policy((source,))
        if isinstance(policy, InvalidPolicy):
            message = policy.failure.message.removeprefix(f"{source.where}: ")
            yield Finding(Level.FAIL, source.where, f"{policy.failure.reason}: {message}")
        else:
            yield Finding(Level.OK, source.where, "is valid")


def _exists(client: Client, resource: Resource, name: str) -> bool:
    try:
        return client.get(resource, name) is not None
    except ApiGone:
        return False


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
    about = "pod.spec.schedulingGroup"
    group = {"podGroupName": "muster-check"}
    stored, error = _dry_run(client, PODS, namespace, {**_POD_SPEC, "schedulingGroup": group})
    if error:
        yield Finding(Level.WARN, about, error)
    elif "schedulingGroup" in stored:
        message = (
            "is kept; whether kube-scheduler and kube-controller-manager have the same gates, no API shows"
        )
        yield Finding(Level.OK, about, message)
    else:
        yield Finding(Level.FAIL, about, f"is dropped by the API server: {HOW_TO_SWITCH_ON}")


def _stored_groups(client: Client) -> Finding:
    """Check that Workloads and PodGroups can be listed.

    An object that an older release stored in an API version unknown to this release fails every list of its
    kind, and so every informer, kube-scheduler's too.
    """
    about = "stored groups"
    try:
        for resource in (WORKLOADS, POD_GROUPS):
            Versioned(client).list(resource)
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


def _workload_with_job(client: Client, namespace: str) -> Finding:
    about = "gate WorkloadWithJob"
    stored, error = _dry_run(client, JOBS, namespace, _JOB_SPEC)
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
    """Check the gate WorkloadWithJob of 1.36 by the API server's metrics, since 1.36 has no field for it."""
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


def _dry_run(client: Client, resource: Resource, namespace: str, spec: Any) -> tuple[dict[str, Any], str]:
    """Return the spec as the API server would store it, and why it refused; exactly one is empty."""
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "muster-check", "namespace": namespace},
        "spec": spec,
    }
    path = resource.path("", namespace)
    status, answer = client.raw("POST", path, query={"dryRun": "All"}, body=body)
    if status == _CREATED and isinstance(answer, dict):
        return dict(answer.get("spec") or {}), ""
    message = answer.get("message", "") if isinstance(answer, dict) else answer
    return {}, f"could not be checked by a dry run in namespace {namespace}: {status} {message}"

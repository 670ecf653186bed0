"""`muster check`: check a cluster, the installation of Muster, or whether it can be uninstalled."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import echo_data, output_option
from muster.cluster.errors import ClusterError
from muster.cluster.http.client import Client
from muster.cluster.interface import POLICY_NAMESPACE, Cluster
from muster.cluster.read import list_if_served
from muster.cluster.versioned import Versioned
from muster.data import EVENTING
from muster.objects.pods import Pod
from muster.objects.resources import (
    CONFIGMAPS,
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
from muster.policy.group_labels import GATE, NAMESPACE_SWITCH
from muster.policy.group_labels import GROUP as GROUP_LABEL
from muster.policy.sources.source import (
    CONFIG_MAP,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
)

TRIGGERS = Resource("eventing.knative.dev", "v1", "triggers", "Trigger")
KNATIVE_SERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
_KNATIVE = (
    (TRIGGERS, "Knative Eventing"),
    (Resource("sources.knative.dev", "v1", "apiserversources", "ApiServerSource"), "Knative Eventing"),
    (KNATIVE_SERVICES, "Knative Serving"),
)
_POLICIES = tuple(
    f"muster-{name}" for name in ("mark-jobs", "mark-jobsets", "schedule-jobs", "stamp-pods", "stamp-gangs")
)
_JUDGES = tuple(
    Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    )
)
"""Of these, check-gangs refuses pods that are not stamped; the others are about Muster's accounts."""


class Level(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARN = "warn"
    """A feature will not work or could not be checked; everything else does."""
    FAIL = "FAIL"
    """Gangs will not be scheduled until this is repaired."""


@dataclass(frozen=True)
class Finding:
    """The result of one check: what was checked, its state, and how to repair it."""

    level: Level
    about: str
    message: str


@click.command("check")
@click.option("--before", is_flag=True, help="Check only the cluster, before Muster is installed.")
@click.option("--uninstall", is_flag=True, help="Check only whether Muster can be uninstalled.")
@output_option
@cluster_options
def command(output: str, options: KubeconfigOptions, *, before: bool, uninstall: bool) -> None:
    """Check whether a cluster has what Muster needs, and whether its admission policies are installed.

    Nothing is written. Whether kube-scheduler and kube-controller-manager have the same gates, no API shows.
    Whether all objects are as in eventing/, `kubectl diff -k` shows; what an account may do, `kubectl auth
    can-i --list --as=system:serviceaccount:muster-system:NAME`.

    Exits with 1 if a check fails.
    """
    with connected(options, "check") as cluster:
        if uninstall:
            found = list(check_uninstall(Versioned(cluster.client)))
        else:
            found = list(check_cluster(cluster.client))
            found += [] if before else check_installation(cluster.client)
    if output == "text":
        for finding in found:
            click.echo(f"{finding.level:<4}  {finding.about}: {finding.message}")
    else:
        echo_data([asdict(finding) for finding in found], output)
    if any(finding.level is Level.FAIL for finding in found):
        raise SystemExit(1)


def first_names(names: list[str], most: int = 10) -> str:
    """Return the first names of a list and the number of the others, as text."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def check_cluster(client: Client) -> Iterator[Finding]:
    """Yield findings about what a cluster must have before Muster is installed."""
    yield from _scheduling_api(client)
    policies = MUTATING_ADMISSION_POLICIES
    yield _served(client, policies, "admission policies", Level.FAIL, "Kubernetes 1.36 or later is needed")
    for resource, name in ((JOBSETS, "JobSet"), (TRAINJOBS, "the Trainer")):
        advice = f"leave ApiServerSource {resource.plural} out, or its adapter restarts for ever"
        yield _served(client, resource, name, Level.WARN, advice)
    for resource, name in _KNATIVE:
        advice = f"install {name}; to try without it: muster run --kubeconfig"
        yield _served(client, resource, name, Level.FAIL, advice)


def check_installation(client: Client) -> Iterator[Finding]:
    """Yield findings about admission policies, opted-in namespaces and the administrator's policy."""
    for resource in (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS):
        found = {body["metadata"]["name"] for body in list_if_served(Versioned(client), resource)}
        missing = first_names([name for name in _POLICIES if name not in found])
        message = f"{missing} not installed: kubectl apply -k {shlex.quote(str(EVENTING / 'admission'))}"
        yield _finding(not missing, resource.kind, "those of Muster are installed", Level.FAIL, message)
    labelled = Versioned(client).list(NAMESPACES, labels=f"{NAMESPACE_SWITCH}=enabled")
    names = first_names([body["metadata"]["name"] for body in labelled])
    message = (
        "is on no namespace: only Jobs whose pod template has a group label are gangs; "
        f"kubectl label namespace NAME {NAMESPACE_SWITCH}=enabled"
    )
    yield _finding(bool(names), f"label {NAMESPACE_SWITCH}", f"is on {names}", Level.WARN, message)
    body = client.get(CONFIGMAPS, CONFIG_MAP, POLICY_NAMESPACE) or {}
    for source in (*source_of_config_map(body, PolicySourceKind.CLUSTER), *locked_fields(body)):
        policy = resolve_policy((source,))
        if policy.failure is not None:
            fault = f"{policy.failure.reason}: {policy.failure.message}"
            yield Finding(Level.FAIL, source.where, fault)
        else:
            yield Finding(Level.OK, source.where, "is valid")


def _finding(good: bool, about: str, state: str, level: Level, problem: str) -> Finding:
    return Finding(Level.OK, about, state) if good else Finding(level, about, problem)


def _served(client: Client, resource: Resource, about: str, level: Level, advice: str) -> Finding:
    kind = f"{resource.api_version} {resource.kind}"
    served = f"{resource.version}/{resource.plural}" in client.served_versions(resource.group)
    return _finding(served, about, f"{kind} is served", level, f"{kind} is not served: {advice}")


def _scheduling_api(client: Client) -> Iterator[Finding]:
    api = choose(client.served_versions(GROUP))
    state = f"{GROUP}/{api.version} serves Workloads and PodGroups"
    yield _finding(bool(api.served), "scheduling API", state, Level.FAIL, HOW_TO_SWITCH_ON)
    if not api.served:
        return
    if not api.resizable:
        message = f"cannot change in {api.version}: a gang keeps its size (GangSizeFixed)"
        yield Finding(Level.WARN, "minCount", message)
    message = (
        "is not served: a policy with nested groups is invalid here (gate CompositePodGroup, "
        f"runtime-config {GROUP}/v1alpha3=true, Kubernetes 1.37)"
    )
    state = "is served: policies may nest groups"
    yield _finding(api.composites, "CompositePodGroup", state, Level.WARN, message)
    yield _stored_groups(client)


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
        message = (
            "an older Kubernetes stored some that this one cannot read, so it lists none and places no pod: "
            f"go back to it, and before the upgrade delete every Workload and PodGroup; {error.message}"
        )
        return Finding(Level.FAIL, about, message)
    return Finding(Level.OK, about, "Workloads and PodGroups can be listed")


def check_uninstall(cluster: Cluster) -> Iterator[Finding]:
    """Yield what has to be done before the functions are deleted, in that order."""
    labelled = cluster.list(NAMESPACES, labels=f"{NAMESPACE_SWITCH}=enabled")
    policies = [
        f"{resource.kind.lower()}/{body['metadata']['name']}"
        for resource in (MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES, *_JUDGES)
        for body in list_if_served(cluster, resource)
        if body["metadata"]["name"].startswith("muster-check-gangs" if resource in _JUDGES else "muster-")
    ]
    gated, orphaned = _stuck_pods(cluster)
    names = [body["metadata"]["name"] for body in labelled]
    new_jobs = f"new Jobs still get group labels: kubectl label namespace --all {NAMESPACE_SWITCH}-"
    gates = (
        "would wait forever: let the functions run until there are none, or delete their Jobs "
        "(muster status -A says what they wait for)"
    )
    groups = "would wait forever: the functions create it at the next sweep"
    for about, left, problem in (
        (f"1. label {NAMESPACE_SWITCH}", names, new_jobs),
        ("2. admission policies", policies, "pods are still stamped: kubectl delete each"),
        ("3. pods with Muster's gate", gated, gates),
        ("4. pods without their PodGroup", orphaned, groups),
    ):
        message = f"{len(left)}, {first_names(sorted(left))}: {problem}"
        yield _finding(not left, about, "there are none", Level.FAIL, message)


def _stuck_pods(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Return the names of unbound pods with Muster's gate, and of those whose PodGroup does not exist.

    All pods are listed, since a gated pod waits even if its group label was removed.
    """
    groups = list_if_served(cluster, POD_GROUPS)
    existing = {(group["metadata"]["namespace"], group["metadata"]["name"]) for group in groups}
    gated, orphaned = [], []
    for pod in map(Pod.read, cluster.list(PODS)):
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if pod.finished or pod.bound:
            continue
        in_group = GROUP_LABEL in pod.metadata.labels and pod.pod_group_name
        if GATE in pod.gates:
            gated.append(name)
        elif in_group and (pod.metadata.namespace, pod.pod_group_name) not in existing:
            orphaned.append(name)
    return gated, orphaned

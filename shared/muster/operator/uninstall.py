"""Check that no pod would wait forever if Muster were uninstalled (docs/uninstall.md)."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cluster.interface import Cluster
from muster.cluster.read import list_if_served
from muster.objects.pods import Pod
from muster.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
)
from muster.operator.check import Finding, Level, first_names
from muster.policy.group_labels import GATE, GROUP, NAMESPACE_SWITCH

_MUSTER_PREFIX = "muster-"
"""Prefix of the names of Muster's admission policies and bindings."""


def check_uninstall(cluster: Cluster) -> Iterator[Finding]:
    """Yield what has to be done before the functions are deleted, in that order.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    gated, orphaned = _stuck_pods(cluster)
    yield _finding(
        f"1. label {NAMESPACE_SWITCH}",
        [body["metadata"]["name"] for body in cluster.list(NAMESPACES, labels=f"{NAMESPACE_SWITCH}=enabled")],
        f"new Jobs still get group labels: kubectl label namespace --all {NAMESPACE_SWITCH}-",
    )
    yield _finding(
        "2. admission policies",
        [
            f"{resource.kind} {body['metadata']['name']}"
            for resource in (MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES)
            for body in list_if_served(cluster, resource)
            if body["metadata"]["name"].startswith(_MUSTER_PREFIX)
        ],
        "pods are still stamped: kubectl delete -k eventing/admission",
    )
    yield _finding(
        "3. pods with Muster's gate",
        gated,
        "would wait forever: let the functions run until there are none, or delete their Jobs "
        "(muster status -A says what they wait for)",
    )
    yield _finding(
        "4. pods without their PodGroup",
        orphaned,
        "would wait forever: the functions create it at the next sweep",
    )


def _finding(about: str, names: list[str], problem: str) -> Finding:
    if names:
        return Finding(Level.FAIL, about, f"{len(names)}, {first_names(sorted(names))}: {problem}")
    return Finding(Level.OK, about, "there are none")


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
        in_group = GROUP in pod.metadata.labels and pod.pod_group_name
        if GATE in pod.gates:
            gated.append(name)
        elif in_group and (pod.metadata.namespace, pod.pod_group_name) not in existing:
            orphaned.append(name)
    return gated, orphaned

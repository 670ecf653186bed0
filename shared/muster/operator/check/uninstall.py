"""Check that no pod would wait forever if Muster were uninstalled (docs/uninstall.md)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from functools import partial

from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster, Object
from muster.cluster.read import collect, list_if_served
from muster.objects.pods import Pod
from muster.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    POD_GROUPS,
    PODS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Resource,
)
from muster.operator.check.preflight import Finding, Level, first_names, opted_in
from muster.policy.group_labels import GATE, GROUP, NAMESPACE_SWITCH

_MUSTER_PREFIX = "muster-"
"""Prefix of the names of Muster's admission policies and bindings."""


def check_uninstall(cluster: Cluster) -> Iterator[Finding]:
    """Yield what has to be done before the functions are deleted, in that order.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    yield _namespace_labels(cluster)
    yield _policies(cluster)
    gated, orphaned = _stuck_pods(cluster)
    if gated:
        yield Finding(
            Level.FAIL,
            "pods with Muster's gate",
            f"{len(gated)} would wait forever: {first_names(gated)}; "
            "let the functions run until there are none, or delete their Jobs "
            "(muster status -A says what they wait for)",
        )
    else:
        yield Finding(Level.OK, "pods with Muster's gate", "there are none")
    if orphaned:
        yield Finding(
            Level.FAIL,
            "pods without their PodGroup",
            f"{len(orphaned)} would wait forever: {first_names(orphaned)}; "
            "the functions create it at the next sweep",
        )
    else:
        yield Finding(Level.OK, "pods without their PodGroup", "there are none")
    yield _account_policies(cluster)


def _namespace_labels(cluster: Cluster) -> Finding:
    about = f"1. label {NAMESPACE_SWITCH}"
    names = opted_in(cluster)
    if names:
        return Finding(
            Level.FAIL,
            about,
            f"new Jobs still get group labels in {first_names(names)}: "
            f"kubectl label namespace --all {NAMESPACE_SWITCH}-",
        )
    return Finding(Level.OK, about, "is on no namespace")


def _policies(cluster: Cluster) -> Finding:
    about = "2. admission policies"
    names = _names_of(cluster, MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES)
    if names:
        return Finding(
            Level.FAIL,
            about,
            f"pods are still stamped: {first_names(names)}; kubectl delete -k eventing/admission",
        )
    return Finding(Level.OK, about, "are gone")


def _account_policies(cluster: Cluster) -> Finding:
    """State the policies that limit the functions; as long as these run, they are better kept."""
    about = "policies of the service accounts"
    names = _names_of(cluster, VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS)
    if names:
        message = f"{len(names)} policies and bindings limit the functions; delete them with the functions"
        return Finding(Level.OK, about, message)
    return Finding(Level.OK, about, "there are none")


def _names_of(cluster: Cluster, *resources: Resource) -> list[str]:
    """Return kind and name of each object of these kinds that is Muster's by its name."""
    return [
        f"{resource.kind} {body['metadata']['name']}"
        for resource in resources
        for body in list_if_served(cluster, resource)
        if body["metadata"]["name"].startswith(_MUSTER_PREFIX)
    ]


def _stuck_pods(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Return the names of unbound pods with Muster's gate, and of those whose PodGroup does not exist."""
    try:
        existing = frozenset(collect(cluster, POD_GROUPS, _names))
    except ApiGone:
        existing = frozenset()
    # All pods are listed, since a gated pod waits even if its group label was removed.
    stuck = collect(cluster, PODS, partial(_stuck, existing))
    return sorted(name for name, gated in stuck if gated), sorted(name for name, gated in stuck if not gated)


def _names(bodies: Iterable[Object]) -> Iterator[tuple[str, str]]:
    return ((body["metadata"]["namespace"], body["metadata"]["name"]) for body in bodies)


def _stuck(existing: Container[tuple[str, str]], bodies: Iterable[Object]) -> Iterator[tuple[str, bool]]:
    """Yield the name of each pod that is stuck, and whether by Muster's gate; no more is kept of a pod."""
    for pod in map(Pod.read, bodies):
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if pod.finished or pod.bound:
            continue
        in_group = GROUP in pod.metadata.labels and pod.pod_group_name
        if GATE in pod.gates:
            yield name, True
        elif in_group and (pod.metadata.namespace, pod.pod_group_name) not in existing:
            yield name, False

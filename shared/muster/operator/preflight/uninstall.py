"""Whether Muster may be taken away without a pod that waits for ever: design section "Uninstalling"."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cluster.observe import list_if_served
from muster.cluster.port import Cluster
from muster.objects.jobs import Pod
from muster.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
)
from muster.operator.preflight.finding import Finding, Level, some
from muster.policy import marks

_OURS = "muster-"


def before_uninstalling(cluster: Cluster) -> Iterator[Finding]:
    """What is to be done before the functions go, in the order in which it is to be done.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    yield _labels(cluster)
    yield _policies(cluster)
    held, lost = _pods(cluster)
    if held:
        yield Finding(
            Level.FAIL,
            "pods with Muster's gate",
            f"{len(held)} would wait for ever: {some(held)}; let the functions go on until there are none, "
            "or delete their Jobs (muster status says what they wait for)",
        )
    else:
        yield Finding(Level.OK, "pods with Muster's gate", "there are none")
    if lost:
        yield Finding(
            Level.FAIL,
            "pods without their PodGroup",
            f"{len(lost)} would wait for ever: {some(lost)}; the functions make it at the next sweep",
        )
    else:
        yield Finding(Level.OK, "pods without their PodGroup", "there are none")


def _labels(cluster: Cluster) -> Finding:
    about = f"1. label {marks.NAMESPACE_SWITCH}"
    found = cluster.list(NAMESPACES, labels=f"{marks.NAMESPACE_SWITCH}=enabled")
    names = sorted(one["metadata"]["name"] for one in found)
    if names:
        return Finding(
            Level.FAIL,
            about,
            f"new Jobs are still marked in {some(names)}: "
            f"kubectl label namespace --all {marks.NAMESPACE_SWITCH}-",
        )
    return Finding(Level.OK, about, "is on no namespace")


def _policies(cluster: Cluster) -> Finding:
    about = "2. admission policies"
    names = [
        f"{resource.kind} {one['metadata']['name']}"
        for resource in (MUTATING_ADMISSION_POLICY_BINDINGS, MUTATING_ADMISSION_POLICIES)
        for one in list_if_served(cluster, resource)
        if one["metadata"]["name"].startswith(_OURS)
    ]
    if names:
        return Finding(
            Level.FAIL,
            about,
            f"pods are still stamped: {some(names)}; kubectl delete -k eventing/admission",
        )
    return Finding(Level.OK, about, "are gone")


def _pods(cluster: Cluster) -> tuple[list[str], list[str]]:
    """Pods that only a function can set free: those with our gate, and those whose group does not exist."""
    there = {
        (group["metadata"]["namespace"], group["metadata"]["name"])
        for group in list_if_served(cluster, POD_GROUPS)
    }
    held, lost = [], []
    # All pods, not only those with our label: somebody may have taken it off, and the gate counts.
    for body in cluster.list(PODS):
        pod = Pod.read(body)
        name = f"{pod.metadata.namespace}/{pod.metadata.name}"
        if pod.finished or pod.bound:
            continue
        stamped = marks.GROUP in pod.metadata.labels and pod.pod_group_name
        if marks.GATE in pod.gates:
            held.append(name)
        elif stamped and (pod.metadata.namespace, pod.pod_group_name) not in there:
            lost.append(name)
    return sorted(held), sorted(lost)

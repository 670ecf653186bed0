"""What a sweep looks at: for each step, the objects it is responsible for."""

from __future__ import annotations

from collections.abc import Iterator

from shared.cluster.observe import list_if_served, live_owner_uids
from shared.cluster.port import Cluster
from shared.objects.jobs import Pod
from shared.objects.meta import KubernetesObject, ObjectRef
from shared.objects.resources import JOBS, JOBSETS, POD_GROUPS, PODS, TRAINJOBS, WORKLOADS
from shared.objects.scheduling import PodGroup, Workload
from shared.policy import bodies, marks
from shared.policy.orphans import is_orphan

_MUSTERS = f"{bodies.MANAGED_BY}={bodies.MUSTER}"


def owners(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every TrainJob, JobSet and Job that may be a root owner: one that no other of them controls."""
    for resource in (TRAINJOBS, JOBSETS, JOBS):
        for body in list_if_served(cluster, resource):
            owner = KubernetesObject.read(body)
            controller = owner.metadata.controller
            if controller is None or controller.kind not in {"TrainJob", "JobSet"}:
                yield owner.ref


def owners_and_orphans(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every root owner, then what owners that are gone left behind."""
    yield from owners(cluster)
    live = live_owner_uids(cluster)
    groups = (PodGroup.read(body) for body in list_if_served(cluster, POD_GROUPS, labels=_MUSTERS))
    workloads = (Workload.read(body) for body in list_if_served(cluster, WORKLOADS, labels=_MUSTERS))
    left: list[PodGroup | Workload] = [*groups, *workloads]
    for found in left:
        if is_orphan(found, live):
            yield found.ref


def unbound_pods(cluster: Cluster) -> Iterator[ObjectRef]:
    """One unbound pod of every group, and every pod that has our gate but no group."""
    seen: set[tuple[str, str]] = set()
    for body in list_if_served(cluster, PODS, labels=marks.GROUP):
        pod = Pod.read(body)
        if pod.bound or pod.finished or not (pod.pod_group_name or marks.GATE in pod.gates):
            continue
        key = (pod.metadata.namespace, pod.pod_group_name or pod.metadata.name)
        if key not in seen:
            seen.add(key)
            yield pod.ref

"""What a sweep looks at: for each step, the objects it is responsible for."""

from __future__ import annotations

from collections.abc import Iterator

from shared.cluster.observe import list_if_served, live_owner_uids
from shared.cluster.port import Cluster
from shared.objects.jobs import Job, JobSet, Pod, TrainJob
from shared.objects.meta import KubernetesObject, ObjectRef
from shared.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    COMPOSITE_POD_GROUPS,
    JOBS,
    JOBSETS,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from shared.objects.scheduling import CompositePodGroup, PodGroup, Workload
from shared.policy import bodies, marks
from shared.policy.orphans import Orphan, is_orphan

_OWNERS: tuple[tuple[Resource, type[TrainJob | JobSet | Job]], ...] = (
    (TRAINJOBS, TrainJob),
    (JOBSETS, JobSet),
    (JOBS, Job),
)
_MADE: tuple[tuple[Resource, type[Orphan]], ...] = (
    (POD_GROUPS, PodGroup),
    (COMPOSITE_POD_GROUPS, CompositePodGroup),
    (WORKLOADS, Workload),
)
_MUSTERS = f"{bodies.MANAGED_BY}={bodies.MUSTER}"


def owners(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every TrainJob, JobSet and Job that may be a root owner: one that no other of them controls.

    Those that have ended, and Jobs without a mark (most of a cluster's), have nothing to be done for.
    """
    for resource, view in _OWNERS:
        for body in list_if_served(cluster, resource):
            owner = view.read(body)
            controller = owner.metadata.controller
            if owner.finished or (controller and controller.kind in {"TrainJob", "JobSet"}):
                continue
            if isinstance(owner, Job) and marks.read_mark(owner.spec.template.metadata.labels) is None:
                continue
            yield owner.ref


def owners_and_orphans(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every root owner, then what owners that are gone left behind."""
    yield from owners(cluster)
    live = live_owner_uids(cluster)
    for resource, view in _MADE:
        for body in list_if_served(cluster, resource, labels=_MUSTERS):
            found = view.read(body)
            if is_orphan(found, live):
                yield found.ref


def runtimes(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every runtime: those with a policy, and those that had one."""
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
        for body in list_if_served(cluster, resource):
            yield KubernetesObject.read(body).ref


def gated_pods(cluster: Cluster) -> Iterator[ObjectRef]:
    """One pod of every group that has pods with our gate, and every pod with our gate but no group."""
    seen: set[tuple[str, str]] = set()
    for body in list_if_served(cluster, PODS, labels=marks.GROUP):
        pod = Pod.read(body)
        if marks.GATE not in pod.gates or pod.finished or pod.being_deleted:
            continue
        key = (pod.metadata.namespace, pod.pod_group_name or pod.metadata.name)
        if key not in seen:
            seen.add(key)
            yield pod.ref

"""What a sweep looks at: for each step, the lists it decides from and the objects it is responsible for.

The order of the lists matters. Pods come before groups, because the scheduler places a group and then binds
its pods. What Muster made comes before the owners: one that is not in a list read later is gone for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import ValidationError

from muster.cluster import errors
from muster.cluster.listed import Listing
from muster.cluster.observe import list_if_served, parent_of
from muster.cluster.port import Cluster, Object
from muster.objects.jobs import Job, JobSet, Pod, TrainJob
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    COMPOSITE_POD_GROUPS,
    EVENTS,
    JOBS,
    JOBSETS,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)
from muster.objects.scheduling import CompositePodGroup, PodGroup, Workload
from muster.policy import bodies, marks
from muster.policy.model import Observed
from muster.policy.orphans import Orphan, is_orphan, living, owner_is_out_of_sight

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

_PODS = Listing(PODS, Pod, labels=marks.GROUP)
_WAITING_PODS = Listing(PODS, Pod, labels=marks.GROUP, fields="spec.nodeName=,status.phase=Pending")
"""A pod without its group, or with a gate, has no node: of a cluster whose gangs run these are none."""

_MADE_AND_OWNERS = tuple(Listing(resource, view) for resource, view in (*_MADE, *_OWNERS))

FOR_WORKLOADS = (_WAITING_PODS, *_MADE_AND_OWNERS)
FOR_POD_GROUPS = _MADE_AND_OWNERS
FOR_RESIZE = (_PODS, *_MADE_AND_OWNERS)
FOR_CONDITIONS = (_PODS, *_MADE_AND_OWNERS, Listing(EVENTS, None, fields="reason=FailedCreate"))
FOR_PODS = (_WAITING_PODS, Listing(POD_GROUPS, PodGroup))
FOR_RUNTIMES = (Listing(CLUSTER_TRAINING_RUNTIMES, None), Listing(TRAINING_RUNTIMES, None))

_View = TypeVar("_View", bound=KubernetesObject)


def owners(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every TrainJob, JobSet and Job that may be a root owner: one that no other of them controls.

    Those that have ended, and Jobs without a mark (most of a cluster's), have nothing to be done for.
    """
    for resource, view in _OWNERS:
        for body in list_if_served(cluster, resource):
            owner = _readable(view, body)
            if owner is None:
                yield _ref(body)
                continue
            if owner.finished or parent_of(owner):
                continue
            if isinstance(owner, Job) and marks.read_mark(owner.spec.template.metadata.labels) is None:
                continue
            yield owner.ref


def owners_and_orphans(cluster: Cluster) -> Iterator[ObjectRef | Observed]:
    """Every root owner, then what owners that are gone left behind.

    An orphan is as good as observed: its owner's UID will never be seen again, and its own is a precondition.
    """
    yield from owners(cluster)
    live, not_served = _live_owners(cluster)
    for resource, view in _MADE:
        for body in list_if_served(cluster, resource, labels=_MUSTERS):
            found = _readable(view, body)
            if found is None or owner_is_out_of_sight(found, not_served):
                continue
            if is_orphan(found, live):
                yield Observed(found.ref, orphan=found, live_uids=live)


def runtimes(cluster: Cluster) -> Iterator[ObjectRef]:
    """Every runtime: those with a policy, and those that had one."""
    for resource in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES):
        for body in list_if_served(cluster, resource):
            yield _ref(body)


def gated_pods(cluster: Cluster) -> Iterator[ObjectRef]:
    """One pod of every group that exists and has pods with our gate, and every such pod without a group.

    Where the API is off no group exists, and every such pod is let go.
    """
    seen: set[tuple[str, str]] = set()
    if cluster.scheduling().served:
        groups = {_place(body) for body in list_if_served(cluster, POD_GROUPS)}
    else:
        groups = None
    for body in list_if_served(cluster, PODS, labels=marks.GROUP):
        pod = _readable(Pod, body)
        if pod is None:
            yield _ref(body)
            continue
        if marks.GATE not in pod.gates or pod.finished or pod.being_deleted:
            continue
        key = (pod.metadata.namespace, pod.pod_group_name or pod.metadata.name)
        waits = pod.pod_group_name and groups is not None and key not in groups
        if not waits and key not in seen:
            seen.add(key)
            yield pod.ref


def _live_owners(cluster: Cluster) -> tuple[frozenset[str], frozenset[str]]:
    """The UIDs of all TrainJobs, JobSets and Jobs, and which of these kinds are not served."""
    uids: list[str] = []
    not_served: set[str] = set()
    for resource, _ in _OWNERS:
        try:
            uids += [body["metadata"]["uid"] for body in cluster.list(resource)]
        except errors.ApiGone:
            not_served.add(resource.kind)
    return living(uids), frozenset(not_served)


def _readable(view: type[_View], body: Object) -> _View | None:
    """The view of an object; None where it has none, so that one of them does not hide all others."""
    try:
        return view.read(body)
    except ValidationError:
        return None


def _ref(body: Object) -> ObjectRef:
    metadata = body["metadata"]
    return ObjectRef(body["apiVersion"], body["kind"], *_place(body), metadata["uid"])


def _place(body: Object) -> tuple[str, str]:
    return body["metadata"].get("namespace") or "", body["metadata"]["name"]

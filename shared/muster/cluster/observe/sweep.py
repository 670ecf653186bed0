"""Lists of a sweep, and the objects that a step is responsible for.

The order of lists matters. Pods come before groups, because the scheduler places a group and then binds its
pods. Objects made by Muster come before owners: an owner that is missing from a later list is gone for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pydantic import ValidationError

from muster.cluster import errors
from muster.cluster.interface import Cluster, Object
from muster.cluster.observe.list_cache import Listing
from muster.cluster.read import each, each_if_served
from muster.objects.meta import KubernetesObject, ObjectMeta, ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, PODS, WORKLOADS, Resource
from muster.objects.scheduling import CompositePodGroup, PodGroup, Workload
from muster.policy.group_labels import GATE, GROUP, MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.owners import KINDS, known_kind_of, parent_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.plans.orphans import OrphanInputs, is_orphan, owner_is_unknown, owner_uids

_CREATED_BY_MUSTER: tuple[tuple[Resource, type[KubernetesObject]], ...] = (
    (POD_GROUPS, PodGroup),
    (COMPOSITE_POD_GROUPS, CompositePodGroup),
    (WORKLOADS, Workload),
)

ALL_PODS = Listing(PODS, Pod, labels=GROUP)
WAITING_PODS = Listing(PODS, Pod, labels=GROUP, fields="spec.nodeName=,status.phase=Pending")
"""Pods without a node: a pod that lacks its group, or has a gate, is among them."""

_View = TypeVar("_View", bound=KubernetesObject)


def groups_and_owners() -> tuple[Listing, ...]:
    """Return lists of everything Muster makes, then of all owners."""
    created = (Listing(resource, view) for resource, view in _CREATED_BY_MUSTER)
    return (*created, *(Listing(kind.resource, kind.view, needless=_is_needless) for kind in KINDS))


def _is_needless(owner: OwnerObject) -> bool:
    """Whether an owner is a Job of its own without group labels, as most of a cluster's are."""
    return parent_of(owner) is None and known_kind_of(owner).skip_event(owner) is not None


def owners(cluster: Cluster) -> Iterator[ObjectRef]:
    """Yield every owner that may be a root owner: one that no other owner controls.

    Owners that have ended, and Jobs without group labels (most of a cluster's), need nothing.
    """
    for kind in KINDS:
        for body in each_if_served(cluster, kind.resource):
            owner = _readable(kind.view, body)
            if owner is None:
                yield _ref(body)
                continue
            if owner.finished or parent_of(owner) or kind.skip_event(owner):
                continue
            yield owner.ref


def owners_and_orphans(cluster: Cluster) -> Iterator[ObjectRef | OrphanInputs]:
    """Yield every root owner, then the objects that deleted owners left behind.

    An orphan needs no further read: its owner's UID will never be seen again, and its own is a precondition.
    """
    yield from owners(cluster)
    live, not_served = _live_owners(cluster)
    for resource, view in _CREATED_BY_MUSTER:
        for body in each_if_served(cluster, resource, labels=f"{MANAGED_BY}={MUSTER}"):
            created = _readable(view, body)
            if created is not None and not owner_is_unknown(created, not_served) and is_orphan(created, live):
                yield OrphanInputs(_without_details(created), live)


def _without_details(created: KubernetesObject) -> KubernetesObject:
    """Return the fields that the plan of an orphan needs: a sweep keeps all orphans until their turns."""
    meta = created.metadata
    labels = {label: meta.labels[label] for label in (MANAGED_BY, OWNER_UID) if label in meta.labels}
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        deletion_timestamp=meta.deletion_timestamp,
        labels=labels,
    )
    return KubernetesObject(api_version=created.api_version, kind=created.kind, metadata=kept)


def objects_of(cluster: Cluster, *resources: Resource, labels: str = "") -> Iterator[ObjectRef]:
    """Yield a reference to every object of these kinds that the label selector matches."""
    for resource in resources:
        for body in each_if_served(cluster, resource, labels=labels):
            yield _ref(body)


def gated_pods(cluster: Cluster) -> Iterator[ObjectRef]:
    """Yield every PodGroup that has pods with our gate, and every such pod without a schedulingGroup.

    If the API is not served no group exists, and every such pod loses its gate.
    """
    seen: set[tuple[str, str]] = set()
    served = cluster.scheduling().served
    groups = {_key(body): _ref(body) for body in each_if_served(cluster, POD_GROUPS)} if served else {}
    for body in each_if_served(cluster, PODS, labels=GROUP):
        pod = _readable(Pod, body)
        if pod is None:
            yield _ref(body)
            continue
        if GATE not in pod.gates or pod.finished or pod.being_deleted:
            continue
        if not (pod.pod_group_name and served):
            yield pod.ref
            continue
        key = (pod.metadata.namespace, pod.pod_group_name)
        if key in groups and key not in seen:
            seen.add(key)
            yield groups[key]


def _live_owners(cluster: Cluster) -> tuple[frozenset[str], frozenset[str]]:
    """Return the UIDs of all owners, and the kinds of owners that are not served."""
    uids: list[str] = []
    not_served: set[str] = set()
    for kind in KINDS:
        try:
            uids += [body["metadata"]["uid"] for body in each(cluster, kind.resource)]
        except errors.ApiGone:
            not_served.add(kind.resource.kind)
    return owner_uids(uids), frozenset(not_served)


def _readable(view: type[_View], body: Object) -> _View | None:
    """Return the view of an object; None if it cannot be read, so that it does not hide all others."""
    try:
        return view.read(body)
    except ValidationError:
        return None


def _ref(body: Object) -> ObjectRef:
    metadata = body["metadata"]
    return ObjectRef(body["apiVersion"], body["kind"], *_key(body), metadata["uid"])


def _key(body: Object) -> tuple[str, str]:
    return body["metadata"].get("namespace") or "", body["metadata"]["name"]

"""The lists of a sweep, and the objects of a namespace that a step looks at in it.

Pods are listed before groups, as the scheduler places a group and then binds its pods, and objects made by
Muster before owners: an owner that is missing from a later list is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from muster.cluster import errors
from muster.cluster.interface import FROM_CACHE, Cluster, Object, Objects
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.read import get, list_if_served
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.pods import Pod, to_run
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    WORKLOADS,
    Resource,
    SchedulingApi,
    by_kind,
)
from muster.policy.group_labels import GATE, GATED, GROUP, MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.owners import KINDS, parent_of
from muster.policy.plans.orphans import OrphanInputs, is_orphan, owner_is_unknown, owner_uids

_Answer = TypeVar("_Answer")

_CREATED_BY_MUSTER = (POD_GROUPS, COMPOSITE_POD_GROUPS, WORKLOADS)


@dataclass(frozen=True)
class Listing:
    """A kind that a sweep lists in each namespace, with selectors as in `Cluster.list`."""

    resource: Resource
    labels: str = ""
    fields: str = ""


ALL_PODS = Listing(PODS, labels=GROUP)
WAITING_PODS = Listing(PODS, labels=GROUP, fields="spec.nodeName=,status.phase=Pending")
"""Pods without a node: a pod that lacks its group, or has a gate, is among them."""


def groups_and_owners() -> tuple[Listing, ...]:
    """Return lists of everything Muster makes, then of all owners."""
    return tuple(map(Listing, (*_CREATED_BY_MUSTER, *(kind.resource for kind in KINDS))))


class ListedNamespace(Snapshot):
    """A namespace as lists of its kinds show it; whatever else is asked for is read live, once."""

    def __init__(self, cluster: Cluster, namespace: str, listings: Iterable[Listing]) -> None:
        self._live = cluster
        self._namespace = namespace
        self.policy_namespace = cluster.policy_namespace
        self._answers: dict[Hashable, Any] = {}
        self._listed: set[Resource] = set()
        bodies: Objects = []
        for of in listings:
            if of.resource.namespaced == bool(namespace):
                with suppress(errors.ApiGone):
                    bodies += cluster.list(
                        of.resource, namespace, labels=of.labels, fields=of.fields, as_of=FROM_CACHE
                    )
                    self._listed.add(of.resource)
        super().__init__(bodies)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object as it was listed; of a kind that was not, the live one."""
        if self._has(resource, namespace):
            return super().get(resource, name, namespace)
        asked = (resource, name, namespace)
        return self._once(asked, lambda: self._live.get(*asked))

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return the listed objects that match the selectors; of other kinds the live ones."""
        if self._has(resource, namespace):
            return super().list(resource, namespace, labels=labels, fields=fields)
        return self._once(
            ("list", resource, namespace, labels, fields),
            lambda: self._live.list(resource, namespace, labels=labels, fields=fields, as_of=as_of),
        )

    def scheduling(self) -> SchedulingApi:
        """See `Cluster`."""
        return self._live.scheduling()

    def _has(self, resource: Resource, namespace: str) -> bool:
        return resource in self._listed and namespace == self._namespace

    def _once(self, key: Hashable, read: Callable[[], _Answer]) -> _Answer:
        if key not in self._answers:
            self._answers[key] = read()
        answer: _Answer = self._answers[key]
        return answer


def namespaces(cluster: Cluster) -> list[str]:
    """Return the names of all namespaces in order, after "" for the objects that are in none."""
    if isinstance(cluster, Snapshot):
        return cluster.namespaces
    bodies = cluster.list(NAMESPACES, as_of=FROM_CACHE)
    return ["", *sorted(body["metadata"]["name"] for body in bodies)]


def owners(cluster: Cluster, namespace: str) -> Iterator[ObjectRef]:
    """Yield every root owner that has not ended, or left PodGroups, and is not skipped by its own fields."""
    if not namespace:
        return
    groups = list_if_served(cluster, POD_GROUPS, namespace) if cluster.scheduling().served else ()
    grouped = {body["metadata"].get("labels", {}).get(OWNER_UID) for body in groups}
    for kind in KINDS:
        for body in list_if_served(cluster, kind.resource, namespace):
            owner = kind.view.read(body)
            has_ended = owner.finished and owner.metadata.uid not in grouped
            if not (has_ended or parent_of(owner) or kind.skip_event(owner)):
                yield owner.ref


@dataclass(frozen=True)
class PossibleOrphan(ObjectRef):
    """An object that Muster made and whose owner seems to be gone."""


def owners_and_orphans(cluster: Cluster, namespace: str) -> Iterator[ObjectRef]:
    """Yield every root owner of a namespace, then the objects that deleted owners left behind."""
    yield from owners(cluster, namespace)
    if not namespace:
        return
    live, not_served = _uids_of_owners(cluster, namespace)
    for resource in _CREATED_BY_MUSTER:
        for body in list_if_served(cluster, resource, namespace, labels=f"{MANAGED_BY}={MUSTER},{OWNER_UID}"):
            created = KubernetesObject.read(body)
            if not owner_is_unknown(created, not_served) and is_orphan(created, live):
                yield PossibleOrphan(**vars(created.ref))


def read_orphan(cluster: Cluster, orphan: PossibleOrphan) -> OrphanInputs | None:
    """Return an object that Muster made, and the owners of its namespace; None if it is gone or in use."""
    created = get(cluster, KubernetesObject, by_kind(orphan.api_version, orphan.kind), orphan)
    if created is None:
        return None
    live, not_served = _uids_of_owners(cluster, orphan.namespace)
    return None if owner_is_unknown(created, not_served) else OrphanInputs(created, live)


def objects_of(
    cluster: Cluster, namespace: str, *resources: Resource, labels: str = ""
) -> Iterator[ObjectRef]:
    """Yield a reference to every object of these kinds in a namespace that the label selector matches."""
    for resource in resources:
        if resource.namespaced == bool(namespace):
            for body in list_if_served(cluster, resource, namespace, labels=labels):
                yield KubernetesObject.read(body).ref


def gated_pods(cluster: Cluster, namespace: str) -> Iterator[ObjectRef]:
    """Yield every PodGroup of a namespace that has pods with our gate, and every such pod without a group."""
    if not namespace:
        return
    listed = list_if_served(cluster, POD_GROUPS, namespace) if cluster.scheduling().served else None
    groups = {body["metadata"]["name"]: KubernetesObject.read(body).ref for body in listed or ()}
    for pod in map(Pod.read, cluster.list(PODS, namespace, labels=GATED, as_of=FROM_CACHE)):
        if not (GATE in pod.gates and to_run(pod)):
            continue
        if not pod.pod_group_name or listed is None:
            yield pod.ref
        elif pod.pod_group_name in groups:
            yield groups.pop(pod.pod_group_name)


def _uids_of_owners(cluster: Cluster, namespace: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the UIDs of all owners of a namespace, and the kinds of owners that are not served."""
    uids: list[str] = []
    not_served: set[str] = set()
    for kind in KINDS:
        try:
            uids += [body["metadata"]["uid"] for body in cluster.list(kind.resource, namespace)]
        except errors.ApiGone:
            not_served.add(kind.resource.kind)
    return owner_uids(uids), frozenset(not_served)

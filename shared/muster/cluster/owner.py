"""Reading the owner of an object: its live objects, its policy sources and its groups.

A missing object is None; an object of another UID than the event's counts as missing.
"""

from __future__ import annotations

from dataclasses import replace

from muster.cluster import policy_sources, read
from muster.cluster.interface import Cluster, Object
from muster.objects.meta import KubernetesObject, ObjectRef, OwnerReference
from muster.objects.pods import Namespace
from muster.objects.resources import NAMESPACES, PRIORITY_CLASSES, WORKLOADS, by_kind
from muster.objects.scheduling import PriorityClass, Workload
from muster.policy.model import NoOp
from muster.policy.owners import kind_of, known_kind_of, owner_kind, parent_of, runs_as, workload_name
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.ownership import MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.resolve import LiveOwner, ResolvedOwner, identify, reason_to_skip, resolve


def read_owner(
    cluster: Cluster, subject: ObjectRef, *, classes: bool = False, to_create: bool = False
) -> tuple[LiveOwner, ResolvedOwner | NoOp]:
    """The root owner of an object with its groups, or the reason to leave it alone.

    Args:
        cluster: where to read.
        subject: an owner, a Job or JobSet of one, or a Workload, group or pod made for one.
        classes: whether PriorityClasses are read where they can change the result.
        to_create: whether groups are going to be created, which say whether their class preempts.
    """
    live = _live_owner(cluster, subject)
    identified = identify(live)
    if isinstance(identified, NoOp):
        return live, identified
    if not (classes and identified.needs_priority_classes(to_create=to_create)):
        return live, resolve(identified)
    listed = cluster.list(PRIORITY_CLASSES)
    return live, resolve(identified, tuple(PriorityClass.read(body) for body in listed))


def name_holder(cluster: Cluster, live: LiveOwner) -> OwnerObject | None:
    """The other owner, as it is now, for which Muster made the Workload of the owner's name, or None."""
    workload, owner_object = live.workload, live.owner
    if workload is None or owner_object is None:
        return None
    uid = workload.metadata.labels.get(OWNER_UID, "")
    named = workload.spec.controller_ref
    kind = owner_kind(named.api_group, named.kind)
    if uid == owner_object.metadata.uid or kind is None:
        return None
    body = cluster.get(kind.resource, named.name, workload.metadata.namespace)
    return kind.view.read(body) if body is not None and body["metadata"]["uid"] == uid else None


def _live_owner(cluster: Cluster, subject: ObjectRef) -> LiveOwner:
    """The root owner of an object with everything that resolving it needs."""
    root, runner = _climb(cluster, subject)
    if root is None:
        return LiveOwner(subject)
    namespace = cluster.get(NAMESPACES, root.metadata.namespace)
    live = LiveOwner(
        subject,
        root,
        runner,
        Namespace.read(namespace) if namespace else None,
        cluster.scheduling(),
        limits=cluster.limits,
    )
    if not live.api.served or reason_to_skip(live) is not None:
        return live
    where = root.metadata.namespace
    ref = ObjectRef(WORKLOADS.api_version, WORKLOADS.kind, where, workload_name(root))
    others = cluster.list(WORKLOADS, where, labels=f"{MANAGED_BY}!={MUSTER}")
    live = replace(
        live,
        workload=read.get(cluster, Workload, WORKLOADS, ref),
        other_workloads=tuple(Workload.read(body) for body in others),
    )
    return replace(live, sources=policy_sources.effective(cluster, live))


def _climb(cluster: Cluster, ref: ObjectRef) -> tuple[OwnerObject | None, OwnerObject | None]:
    """The root owner of an object, and the object that makes its Jobs or pods."""
    kind = kind_of(ref)
    if kind is None:
        above = _owner_ref(cluster.get(by_kind(ref.api_version, ref.kind), ref.name, ref.namespace), ref)
        return (None, None) if above is None else _climb(cluster, above)
    owner_object = read.get(cluster, kind.view, kind.resource, ref)
    if owner_object is None:
        return None, None
    if kind.runs_as is not None:
        return owner_object, _runner_of(cluster, owner_object, kind)
    parent = parent_of(owner_object)
    if parent is None:
        return owner_object, owner_object
    if kind.is_job:
        return _climb(cluster, parent)
    parent_kind = known_kind_of(parent)
    return read.get(cluster, parent_kind.view, parent_kind.resource, parent), owner_object


def _runner_of(cluster: Cluster, root: OwnerObject, kind: OwnerKind) -> OwnerObject | None:
    """The object that an owner runs as has its name; that of an earlier owner of this name is not it."""
    runner_kind = runs_as(kind)
    body = cluster.get(runner_kind.resource, root.metadata.name, root.metadata.namespace)
    runner = runner_kind.view.read(body) if body else None
    controller = runner.metadata.controller if runner else None
    return runner if controller and controller.uid == root.metadata.uid else None


def _owner_ref(body: Object | None, ref: ObjectRef) -> ObjectRef | None:
    """The owner of a pod, group or Workload; a user's Workload may name it by controllerRef alone."""
    if body is None or (ref.uid and body["metadata"]["uid"] != ref.uid):
        return None
    if ref.kind == WORKLOADS.kind:
        named = Workload.read(body).spec.controller_ref
        kind = owner_kind(named.api_group, named.kind)
        if kind is not None:
            return ObjectRef(f"{named.api_group}/", named.kind, ref.namespace, named.name)
    controller: OwnerReference | None = KubernetesObject.read(body).metadata.controller
    if controller is None or kind_of(controller) is None:
        return None
    return ObjectRef(controller.api_version, controller.kind, ref.namespace, controller.name, controller.uid)

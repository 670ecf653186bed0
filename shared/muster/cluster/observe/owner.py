"""Reading the owner of an object: its live objects, its policy sources and its groups.

A missing object is None; an object of another UID than the event's counts as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from muster.cluster import errors, read
from muster.cluster.interface import FROM_CACHE, Cluster, Object
from muster.cluster.observe import policy_sources
from muster.cluster.observe.members import groups_left, jobs_of, read_members
from muster.objects.meta import KubernetesObject, ObjectMeta, ObjectRef
from muster.objects.pods import Namespace
from muster.objects.resources import NAMESPACES, POD_GROUPS, PRIORITY_CLASSES, WORKLOADS, by_kind
from muster.objects.scheduling import ManagedPodGroup, PriorityClass, Workload
from muster.policy.group_labels import GROUP, MANAGED_BY, MUSTER, OWNER_UID, REPLICATED_JOB
from muster.policy.model import NoOp
from muster.policy.owners import kind_of, known_kind_of, owner_kind, parent_of, runs_as, workload_name
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, OwnerGroups, ResolvedOwner, identify, reason_to_skip, resolve
from muster.policy.tree.members import LiveMembers


def read_owner(
    cluster: Cluster,
    subject: ObjectRef,
    *,
    classes: bool = False,
    to_create: bool = False,
    by_workload: bool = False,
    chain: Chain | None = None,
) -> tuple[LiveOwner, ResolvedOwner | NoOp]:
    """Return the root owner of an object with its groups, or the reason to leave it alone.

    PriorityClasses are read for `classes` where they can change the groups, for `to_create` where their
    preemptionPolicy can. With `by_workload` the policy of an owner without a Workload is not read. `chain` is
    what `read_chain` returned for the subject.
    """
    chain = chain or read_chain(cluster, subject)
    may_be_new = to_create and cluster.expects_new and kind_of(subject) is not None
    live = _live_owner(cluster, subject, chain, by_workload=by_workload, may_be_new=may_be_new)
    resolved = _resolved(cluster, live, classes=classes, to_create=to_create)
    if may_be_new and isinstance(resolved, ResolvedOwner) and resolved.why_no_groups is not None:
        # Its Workload may exist after all, and have the policy that it was made under.
        live = _live_owner(cluster, subject, chain, by_workload=by_workload, may_be_new=False)
        resolved = _resolved(cluster, live, classes=classes, to_create=to_create)
    return live, resolved


def read_owner_groups(cluster: Cluster, subject: ObjectRef) -> OwnerGroups:
    """Return the root owner of an object with its Jobs, pods and groups; of one that has ended its groups."""
    live, resolved = read_owner(cluster, subject)
    if isinstance(resolved, NoOp):
        ended = resolved.reason == Reason.FINISHED
        return OwnerGroups(resolved, groups_left(cluster, live) if ended else LiveMembers())
    return OwnerGroups(resolved, read_members(cluster, live, resolved))


def _resolved(cluster: Cluster, live: LiveOwner, *, classes: bool, to_create: bool) -> ResolvedOwner | NoOp:
    identified = identify(live)
    if isinstance(identified, NoOp):
        return identified
    if not (classes or to_create) or not identified.needs_priority_classes(to_create=to_create):
        return resolve(identified)
    listed = cluster.list(PRIORITY_CLASSES, as_of=live.as_of)
    return resolve(identified, tuple(PriorityClass.read(body) for body in listed))


@dataclass(frozen=True)
class Chain:
    """The objects from a subject up to its root owner; None where there is none."""

    subject: KubernetesObject | None = None
    root: OwnerObject | None = None
    runner: OwnerObject | None = None


_VIEWS: dict[str, type[KubernetesObject]] = {WORKLOADS.kind: Workload, POD_GROUPS.kind: ManagedPodGroup}


def read_chain(cluster: Cluster, ref: ObjectRef) -> Chain:
    """Return the objects from one up to its root owner."""
    kind = kind_of(ref)
    if kind is None:
        view = _VIEWS.get(ref.kind, KubernetesObject)
        subject = read.get(cluster, view, by_kind(ref.api_version, ref.kind), ref)
        above = None if subject is None else _owner_ref(subject)
        return Chain() if above is None else replace(read_chain(cluster, above), subject=subject)
    owner_object = read.get(cluster, kind.view, kind.resource, ref)
    if owner_object is None:
        return Chain()
    if kind.runs_as is not None:
        return Chain(None, owner_object, _runner_of(cluster, owner_object, kind))
    parent = parent_of(owner_object)
    if parent is None:
        return Chain(None, owner_object, owner_object)
    if kind.is_job:
        return replace(read_chain(cluster, parent), subject=owner_object)
    parent_kind = known_kind_of(parent)
    return Chain(None, read.get(cluster, parent_kind.view, parent_kind.resource, parent), owner_object)


def _runner_of(cluster: Cluster, root: OwnerObject, kind: OwnerKind) -> OwnerObject | None:
    """Return the JobSet that has the TrainJob's name and is controlled by it, or None."""
    runner_kind = runs_as(kind)
    body = cluster.get(runner_kind.resource, root.metadata.name, root.metadata.namespace)
    runner = runner_kind.view.read(body) if body else None
    controller = runner.metadata.controller if runner else None
    return runner if controller and controller.uid == root.metadata.uid else None


def _owner_ref(created: KubernetesObject) -> ObjectRef | None:
    """Return the owner of a pod, group or Workload; a user's Workload may name it by controllerRef alone."""
    controller, namespace = created.metadata.controller, created.metadata.namespace
    if isinstance(created, Workload):
        named = created.spec.controller_ref
        if owner_kind(named.api_group, named.kind) is not None:
            return ObjectRef(f"{named.api_group}/", named.kind, namespace, named.name)
    return None if controller is None or kind_of(controller) is None else controller.ref_in(namespace)


def _live_owner(
    cluster: Cluster, subject: ObjectRef, chain: Chain, *, by_workload: bool, may_be_new: bool
) -> LiveOwner:
    """Return the root owner of a chain; the Workload of one that `may_be_new` is not read."""
    root = chain.root
    if root is None:
        return LiveOwner(subject)
    live = LiveOwner(
        subject,
        root,
        chain.runner,
        _namespace(cluster, root),
        cluster.scheduling(),
        as_of=_newest_version(chain.subject, root, chain.runner),
        pod_group=chain.subject if isinstance(chain.subject, ManagedPodGroup) else None,
    )
    if not live.api.served or reason_to_skip(live) is not None:
        return live
    where = root.metadata.namespace
    ref = ObjectRef(WORKLOADS.api_version, WORKLOADS.kind, where, workload_name(root))
    about = chain.subject
    workload: Workload | None = None
    if isinstance(about, Workload) and about.metadata.name == ref.name:
        workload = about
    elif not may_be_new:
        workload = read.get(cluster, Workload, WORKLOADS, ref)
    live = replace(live, workload=workload)
    if live.musters_workload is None:
        # A user makes a Workload of their own before its owner, or it is the subject.
        others = cluster.list(WORKLOADS, where, labels=f"{MANAGED_BY}!={MUSTER}", as_of=live.as_of)
        other_owner = None if workload is None else _other_owner(cluster, workload, root)
        live = replace(live, other_workloads=_workloads_of(root, others), other_owner=other_owner)
    if live.unmarked:
        jobs = [job for job in jobs_of(cluster, live, as_of=FROM_CACHE) if not job.being_deleted]
        live = replace(live, groups_of_jobs=_groups_of(jobs))
    if by_workload and not live.workloads:
        return live
    return replace(live, sources=policy_sources.effective(cluster, live))


def _namespace(cluster: Cluster, root: OwnerObject) -> Namespace | None:
    """Return the owner's Namespace, or None if it is gone; for a Job only its name, without a read.

    A Job has its final labels. In a namespace that is being deleted the API server refuses all new objects.
    """
    name = root.metadata.namespace
    if known_kind_of(root).is_job:
        metadata = ObjectMeta(name=name)
        return Namespace(api_version=NAMESPACES.api_version, kind=NAMESPACES.kind, metadata=metadata)
    body = cluster.get(NAMESPACES, name)
    return Namespace.read(body) if body else None


def _groups_of(jobs: Collection[Job]) -> dict[str, str]:
    """Return the groups of a JobSet's Jobs by replicatedJob; none if one has no group label."""
    if any(job.unmarked for job in jobs):
        return {}
    labels = [job.spec.template.metadata.labels for job in jobs]
    return {its.get(REPLICATED_JOB, ""): its.get(GROUP, "") for its in labels}


def _newest_version(*objects: KubernetesObject | None) -> str:
    versions = (found.metadata.resource_version for found in objects if found is not None)
    return max(versions, key=lambda version: (len(version), version), default="")


def _workloads_of(root: OwnerObject, workloads: Iterable[Object]) -> tuple[Workload, ...]:
    named = {"apiGroup": known_kind_of(root).resource.group, "kind": root.kind, "name": root.metadata.name}
    return tuple(Workload.read(body) for body in workloads if body["spec"].get("controllerRef") == named)


def _other_owner(cluster: Cluster, workload: Workload, root: OwnerObject) -> OwnerObject | None:
    """Return the owner that the Workload's labels and controllerRef name, if it exists and is not `root`.

    Where its kind is not served it counts as existing: an API server may serve it in another version.
    """
    uid = workload.metadata.labels.get(OWNER_UID, "")
    named = workload.spec.controller_ref
    kind = owner_kind(named.api_group, named.kind)
    if uid in {"", root.metadata.uid} or kind is None:
        return None
    namespace = workload.metadata.namespace
    try:
        body = cluster.get(kind.resource, named.name, namespace)
    except errors.ApiGone:
        metadata = {"name": named.name, "namespace": namespace, "uid": uid}
        body = {"apiVersion": kind.resource.api_version, "kind": named.kind, "metadata": metadata}
    return kind.view.read(body) if body is not None and body["metadata"]["uid"] == uid else None

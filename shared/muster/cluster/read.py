"""Reading the inputs of plans: the owner of an object, its groups, and their existing objects.

A missing object is None or left out of a tuple; an object of another UID than the event's counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from muster.cluster import errors, policy_sources
from muster.cluster.interface import Cluster, Object, Objects
from muster.objects.meta import KubernetesObject, ObjectRef, OwnerReference
from muster.objects.pods import Namespace, Pod
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    EVENTS,
    JOBS,
    LABEL_VALUE,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    PRIORITY_CLASSES,
    WORKLOADS,
    Resource,
    by_kind,
)
from muster.objects.scheduling import CompositePodGroup, PodGroup, PriorityClass, Workload
from muster.policy.group_labels import GROUP
from muster.policy.model import NoOp
from muster.policy.owners import kind_of, known_kind_of, owner_kind, parent_of, runs_as
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.ownership import MANAGED_BY, MUSTER, OWNER_UID
from muster.policy.resolve import (
    LiveOwner,
    ResolvedOwner,
    identify,
    reason_to_skip,
    resolve,
    workload_name,
)
from muster.policy.tree.members import LiveMembers

_View = TypeVar("_View", bound=KubernetesObject)


def owner(
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


def members(
    cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner | NoOp, *, with_pods: bool = True
) -> LiveMembers:
    """The Jobs, pods, PodGroups and CompositePodGroups of an owner.

    Pods before groups: the scheduler places a group and then binds its pods, so a group is never reported as
    unschedulable beside bound pods of it.
    """
    jobs = jobs_of(cluster, live)
    pods = pods_of(cluster, live) if with_pods else ()
    above = composites(cluster, resolved) if isinstance(resolved, ResolvedOwner) else ()
    return LiveMembers(jobs, pods, pod_groups(cluster, live, resolved, pods), above)


def jobs_of(cluster: Cluster, live: LiveOwner) -> tuple[Job, ...]:
    """The Jobs of an owner's JobSet; a Job is its own."""
    runner = live.runner
    if runner is None or isinstance(runner, Job):
        return () if runner is None else (runner,)
    listed = cluster.list(JOBS, runner.metadata.namespace, labels=_selector(runner))
    jobs = (Job.read(body) for body in listed)
    uid = runner.metadata.uid
    return tuple(job for job in jobs if job.metadata.controller and job.metadata.controller.uid == uid)


def pods_of(cluster: Cluster, live: LiveOwner) -> tuple[Pod, ...]:
    """The pods of an owner."""
    runner = live.runner or live.owner
    if runner is None:
        return ()
    listed = cluster.list(PODS, runner.metadata.namespace, labels=_selector(runner))
    return tuple(Pod.read(body) for body in listed)


def pod_groups(
    cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner | NoOp, pods: Iterable[Pod]
) -> tuple[PodGroup, ...]:
    """The PodGroups that an owner should have and those that its pods name, by any creator."""
    if live.owner is None or not live.api.served:
        return ()
    namespace = live.owner.metadata.namespace
    names = {pod.pod_group_name for pod in pods if pod.pod_group_name}
    if isinstance(resolved, ResolvedOwner):
        names |= {name for _, name in resolved.pod_groups()}
    if len(names) <= cluster.single_reads:
        bodies = (cluster.get(POD_GROUPS, name, namespace) for name in sorted(names))
        return tuple(PodGroup.read(body) for body in bodies if body)
    listed = (PodGroup.read(body) for body in cluster.list(POD_GROUPS, namespace))
    return tuple(group for group in listed if group.metadata.name in names)


def composites(cluster: Cluster, resolved: ResolvedOwner) -> tuple[CompositePodGroup, ...]:
    """The CompositePodGroups that an owner should have, as far as they exist."""
    names = resolved.composite_names() if resolved.api.composites else ()
    bodies = (cluster.get(COMPOSITE_POD_GROUPS, name, resolved.root.namespace) for name in names)
    return tuple(CompositePodGroup.read(body) for body in bodies if body)


def pods_of_group(cluster: Cluster, group: PodGroup) -> tuple[Pod, ...]:
    """The pods that name a group: those of its owner, or labelled ones if it has none."""
    controller, namespace = group.metadata.controller, group.metadata.namespace
    labels = GROUP
    kind = None if controller is None else kind_of(controller)
    if controller is not None and kind is not None:
        if not LABEL_VALUE.fullmatch(controller.name):
            return ()  # an ownerReference may have any text as name
        labels = f"{runs_as(kind).pod_label}={controller.name}"
    pods = (Pod.read(body) for body in cluster.list(PODS, namespace, labels=labels))
    return tuple(pod for pod in pods if pod.pod_group_name == group.metadata.name)


def failed_create(cluster: Cluster, jobs: tuple[Job, ...]) -> str:
    """The message of the latest FailedCreate Event of some Jobs: a full quota is reported nowhere else."""
    uids = [job.metadata.uid for job in jobs]
    namespace = jobs[0].metadata.namespace
    # For each of these the API server reads all Events of the namespace.
    selectors = [f"involvedObject.uid={uid},reason=FailedCreate" for uid in uids]
    if len(selectors) > cluster.single_reads:
        selectors = ["reason=FailedCreate"]
    events = (event for fields in selectors for event in cluster.list(EVENTS, namespace, fields=fields))
    messages = (
        (event.get("lastTimestamp") or event.get("eventTime") or "", event.get("message") or "")
        for event in events
        if event["involvedObject"].get("uid") in uids
    )
    return max(messages, default=("", ""))[1]


def name_holder_lives(cluster: Cluster, live: LiveOwner) -> bool:
    """Whether the Workload of the owner's name was made by Muster for another, living owner."""
    workload, owner_object = live.workload, live.owner
    if workload is None or owner_object is None:
        return False
    uid = workload.metadata.labels.get(OWNER_UID, "")
    named = workload.spec.controller_ref
    kind = owner_kind(named.api_group, named.kind)
    if uid == owner_object.metadata.uid or kind is None:
        return False
    body = cluster.get(kind.resource, named.name, workload.metadata.namespace)
    return body is not None and body["metadata"]["uid"] == uid


def list_if_served(cluster: Cluster, resource: Resource, namespace: str = "", *, labels: str = "") -> Objects:
    """All objects of a kind; none if the cluster does not serve it, for example without the Trainer."""
    try:
        return cluster.list(resource, namespace, labels=labels)
    except errors.ApiGone:
        return []


def get(cluster: Cluster, view: type[_View], resource: Resource, ref: ObjectRef) -> _View | None:
    """The view of an object; None if there is none of that name and UID."""
    body = cluster.get(resource, ref.name, ref.namespace)
    if body is None or (ref.uid and body["metadata"]["uid"] != ref.uid):
        return None
    return view.read(body)


def _live_owner(cluster: Cluster, subject: ObjectRef) -> LiveOwner:
    """The root owner of an object with everything that resolving it needs."""
    root, runner = _climb(cluster, subject)
    if root is None:
        return LiveOwner(subject)
    namespace = cluster.get(NAMESPACES, root.metadata.namespace)
    live = LiveOwner(
        subject, root, runner, Namespace.read(namespace) if namespace else None, cluster.scheduling()
    )
    if not live.api.served or reason_to_skip(live) is not None:
        return live
    where = root.metadata.namespace
    ref = ObjectRef(WORKLOADS.api_version, WORKLOADS.kind, where, workload_name(root))
    others = cluster.list(WORKLOADS, where, labels=f"{MANAGED_BY}!={MUSTER}")
    live = replace(
        live,
        workload=get(cluster, Workload, WORKLOADS, ref),
        other_workloads=tuple(Workload.read(body) for body in others),
    )
    return replace(live, sources=policy_sources.effective(cluster, live))


def _climb(cluster: Cluster, ref: ObjectRef) -> tuple[OwnerObject | None, OwnerObject | None]:
    """The root owner of an object, and the object that makes its Jobs or pods."""
    kind = kind_of(ref)
    if kind is None:
        above = _owner_ref(cluster.get(by_kind(ref.api_version, ref.kind), ref.name, ref.namespace), ref)
        return (None, None) if above is None else _climb(cluster, above)
    owner_object = get(cluster, kind.view, kind.resource, ref)
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
    return get(cluster, parent_kind.view, parent_kind.resource, parent), owner_object


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


def _selector(runner: OwnerObject) -> str:
    """The label selector of the pods and Jobs of a JobSet, or of the pods of a Job."""
    return f"{runs_as(known_kind_of(runner)).pod_label}={runner.metadata.name}"

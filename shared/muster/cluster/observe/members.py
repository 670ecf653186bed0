"""Reading the members of an owner: its Jobs, pods, PodGroups and CompositePodGroups, as far as they exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from muster.cluster.interface import FROM_CACHE, Cluster, Object
from muster.cluster.observe.gathered import pods_of_gang
from muster.objects.pods import Pod
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    EVENTS,
    JOBS,
    LABEL_VALUE,
    POD_GROUPS,
    PODS,
    Resource,
)
from muster.objects.scheduling import CompositePodGroup, ManagedPodGroup, PodGroup
from muster.policy.group_labels import GATED, GROUP, JOB_NAME, MANAGED_BY, MUSTER, OWNER_UID, is_gathered
from muster.policy.groups.manifests import FALLBACK, PLAIN_GROUPS
from muster.policy.model import NoOp
from muster.policy.owners import kind_of, known_kind_of, runs_as
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.tree.members import LiveMembers
from muster.policy.tree.policy_tree import LEVELS

_SINGLE_READS = 8
"""Fewer GETs than these cost less than a list of a namespace."""


def read_members(cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner | NoOp) -> LiveMembers:
    """Return the Jobs, pods, PodGroups and CompositePodGroups of an owner.

    Pods before groups: the scheduler places a group and then binds its pods, so a group is never reported as
    unschedulable beside bound pods of it.
    """
    jobs = jobs_of(cluster, live)
    pods = pods_of(cluster, live)
    groups = pod_groups(cluster, live, resolved, pods)
    above = composites(cluster, resolved, groups) if isinstance(resolved, ResolvedOwner) else ()
    return LiveMembers(jobs, pods, groups, above)


def read_groups(cluster: Cluster, resolved: ResolvedOwner) -> LiveMembers:
    """Return the Jobs, PodGroups and CompositePodGroups of an owner, without its pods.

    The Jobs are those in the API server's cache: a Job that is missing there counts in full, and a change of
    its size that is missing has an event of its own. The groups of a new Workload are not read.
    """
    live = resolved.live
    if cluster.expects_new and live.musters_workload is not None and isinstance(live.runner, Job):
        return LiveMembers((live.runner,))
    jobs = jobs_of(cluster, live, as_of=FROM_CACHE)
    groups = pod_groups(cluster, live, resolved, ())
    return LiveMembers(jobs, (), groups, composites(cluster, resolved, groups))


def jobs_of(cluster: Cluster, live: LiveOwner, *, as_of: str = "") -> tuple[Job, ...]:
    """Return the Jobs of an owner's JobSet; a Job is its own."""
    runner = live.runner
    if runner is None or isinstance(runner, Job):
        return () if runner is None else (runner,)
    if not LABEL_VALUE.fullmatch(runner.metadata.name):
        return ()
    listed = cluster.list(JOBS, runner.metadata.namespace, labels=_selector(runner), as_of=as_of)
    jobs = (Job.read(body) for body in listed)
    uid = runner.metadata.uid
    return tuple(job for job in jobs if job.metadata.controller and job.metadata.controller.uid == uid)


def pods_of(cluster: Cluster, live: LiveOwner) -> tuple[Pod, ...]:
    """Return the pods of an owner."""
    runner = live.runner or live.owner
    if runner is None or not LABEL_VALUE.fullmatch(runner.metadata.name):
        return ()  # a name may be longer than a label
    name = runner.spec.template.metadata.labels.get(JOB_NAME, "") if isinstance(runner, Job) else ""
    own_name = name in {"", runner.metadata.name}
    labels = _selector(runner) if own_name else f"{JOB_NAME}={name}"
    pods = tuple(Pod.read(body) for body in cluster.list(PODS, runner.metadata.namespace, labels=labels))
    if own_name:
        return pods
    # With manualSelector the pods may have the name of another Job, and be listed with that one's.
    uid = runner.metadata.uid
    return tuple(pod for pod in pods if pod.metadata.controller and pod.metadata.controller.uid == uid)


def pod_groups(
    cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner | NoOp, pods: Iterable[Pod]
) -> tuple[PodGroup, ...]:
    """Return the PodGroups that an owner should have or its pods name, whoever created them, sorted by name.

    The one of the event is not read again if it was placed then: it stays placed.
    """
    if live.owner is None or not live.api.served:
        return ()
    namespace = live.owner.metadata.namespace
    names = {pod.pod_group_name for pod in pods if pod.pod_group_name}
    if isinstance(resolved, ResolvedOwner):
        names |= {one.name for one in resolved.pod_groups}
    known = live.pod_group
    placed = (known,) if known is not None and known.placed and known.metadata.name in names else ()
    names -= {group.metadata.name for group in placed}
    groups = (*placed, *(PodGroup.read(body) for body in _named(cluster, POD_GROUPS, namespace, names)))
    return tuple(sorted(groups, key=lambda group: group.metadata.name))


def composites(
    cluster: Cluster, resolved: ResolvedOwner, groups: Iterable[PodGroup]
) -> tuple[CompositePodGroup, ...]:
    """Return the existing CompositePodGroups that an owner should have or that are above its groups.

    After a change of its policy its groups may be in those of an earlier one.
    """
    if not resolved.api.composites:
        return ()
    names, known = set(resolved.composite_names()), set[str]()
    names |= {group.spec.parent for group in groups}
    found: list[CompositePodGroup] = []
    for _ in range(LEVELS):
        names -= known | {""}
        if not names:
            break
        bodies = _named(cluster, COMPOSITE_POD_GROUPS, resolved.root.namespace, names)
        above = [CompositePodGroup.read(body) for body in bodies]
        found += above
        known |= names
        names = {composite.spec.parent for composite in above}
    return tuple(found)


def groups_left(cluster: Cluster, live: LiveOwner) -> LiveMembers:
    """Return the groups that Muster made for an owner, by their labels, those of other names included."""
    if live.owner is None or not live.api.served:
        return LiveMembers()
    labels = f"{MANAGED_BY}={MUSTER},{OWNER_UID}={live.owner.metadata.uid}"
    listed = partial(cluster.list, namespace=live.owner.metadata.namespace, labels=labels, as_of=FROM_CACHE)
    groups = tuple(map(PodGroup.read, listed(POD_GROUPS)))
    above = listed(COMPOSITE_POD_GROUPS) if any(group.spec.parent for group in groups) else ()
    return LiveMembers(groups=groups, composites=tuple(map(CompositePodGroup.read, above)))


def groups_beside(cluster: Cluster, group: PodGroup) -> tuple[ManagedPodGroup, ...]:
    """Return all PodGroups of a group's owner; none unless create_pod_groups wrote that all are plain."""
    number = group.metadata.annotations.get(PLAIN_GROUPS, "")
    if number == "1" and isinstance(group, ManagedPodGroup):
        return (group,)
    uid = group.metadata.labels.get(OWNER_UID, "")
    if not (number and LABEL_VALUE.fullmatch(uid)):
        return ()
    listed = cluster.list(POD_GROUPS, group.metadata.namespace, labels=f"{OWNER_UID}={uid}", as_of=FROM_CACHE)
    return tuple(map(ManagedPodGroup.read, listed))


def pods_of_group(cluster: Cluster, group: PodGroup, *, gated: bool = False) -> tuple[Pod, ...]:
    """Return the pods that name a group: its owner's, or labelled ones if it has none or is a fallback group.

    Pods of several owners may need the same fallback group. With `gated` only those that wait for their gate.

    They are those in the API server's cache. One that is missing there, because the answer came from another
    API server than its event, keeps its gate until its own event comes, or the next sweep.
    """
    controller, namespace = group.metadata.controller, group.metadata.namespace
    if is_gathered(group.metadata.labels):  # those without a gate count, too
        return pods_of_gang(cluster, group.ref)
    labels = GROUP
    kind = None if controller is None else kind_of(controller)
    if controller is not None and kind is not None and FALLBACK not in group.metadata.annotations:
        if not LABEL_VALUE.fullmatch(controller.name):
            return ()  # an ownerReference may have any text as name
        labels = f"{runs_as(kind).pod_label}={controller.name}"
    labels = f"{labels},{GATED}" if gated else labels
    # A view of each of thousands of pods, for each of hundreds of groups, would take minutes.
    listed = cluster.list(PODS, namespace, labels=labels, as_of=FROM_CACHE)
    return tuple(Pod.read(body) for body in listed if _pod_group_name(body) == group.metadata.name)


def _pod_group_name(pod: Object) -> str:
    scheduling_group = pod["spec"].get("schedulingGroup") or {}
    name: str = scheduling_group.get("podGroupName", "")
    return name


def failed_create(cluster: Cluster, resolved: ResolvedOwner, members: LiveMembers) -> str:
    """Return the latest Event about Jobs or pods that an owner lacks: a full quota is reported nowhere else.

    The Job controller writes FailedCreate on the Job, JobSet JobCreationFailed on the JobSet (v0.12.0,
    pkg/controllers/jobset_controller.go).
    """
    jobs, runner = members.jobs, resolved.live.runner or resolved.owner
    first_jobs = sum(pod_set.jobs for pod_set in resolved.pod_sets.pod_sets if not pod_set.waits_for)
    if len(jobs) < first_jobs:
        uids, reason = {runner.metadata.uid}, "JobCreationFailed"
    elif len(members.pods) < sum(job.spec.parallelism for job in jobs):
        uids, reason = {job.metadata.uid for job in jobs}, "FailedCreate"
    else:
        return ""
    messages = (
        (event.get("lastTimestamp") or event.get("eventTime") or "", event.get("message") or "")
        for event in cluster.list(EVENTS, runner.metadata.namespace, fields=f"reason={reason}")
        if event["involvedObject"].get("uid") in uids
    )
    return max(messages, default=("", ""))[1]


def _selector(runner: OwnerObject) -> str:
    return f"{runs_as(known_kind_of(runner)).pod_label}={runner.metadata.name}"


def _named(cluster: Cluster, resource: Resource, namespace: str, names: set[str]) -> Iterator[Object]:
    """Return the objects of these names, as far as they exist: a few one by one, many from one list."""
    if len(names) <= _SINGLE_READS:
        bodies = (cluster.get(resource, name, namespace) for name in sorted(names))
        return (body for body in bodies if body is not None)
    return (body for body in cluster.list(resource, namespace) if body["metadata"]["name"] in names)

"""Resolve the groups of an owner from the objects that were read; called once per event, before the plan.

An owner is left alone (a NoOp with the reason, from `identify`), grouped (a ResolvedOwner), or cannot be
grouped although its pods are stamped (a ResolvedOwner with a `failure`). `resolve` adds the PriorityClasses,
which only some owners need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from muster.objects.meta import ObjectRef
from muster.objects.pods import Namespace
from muster.objects.resources import COMPOSITE_POD_GROUPS, LABEL_VALUE, POD_GROUPS, SchedulingApi
from muster.objects.scheduling import CompositePodGroupTemplate, PodGroup, PriorityClass, Workload
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.policy import group_labels
from muster.policy.group_labels import belongs_to, is_musters
from muster.policy.model import GroupingFailure, NoOp
from muster.policy.own_workload import NEEDED_BY_COMPOSITES, misfit, own_tree, own_workload
from muster.policy.owners import known_kind_of, workload_name
from muster.policy.owners.kind import OwnerObject, OwnerPodSets
from muster.policy.reasons import Reason
from muster.policy.sources.source import (
    DEFAULT,
    UPSTREAM_GROUPS,
    EffectivePolicy,
    PolicySource,
    resolve_policy,
)
from muster.policy.tree import validation
from muster.policy.tree.groups import Group, default_tree
from muster.policy.tree.members import GroupKey, LiveMembers
from muster.policy.tree.policy_tree import path_of, policy_tree

_CREATED_BEFORE = "its Jobs were created before the namespace was opted in; create it again"
_CANNOT_BE_GROUPED = ": these have a system-* priorityClassName, a nodeName or evictionResponders"


@dataclass(frozen=True)
class LiveOwner:
    """The objects of the cluster from which the groups of an owner are resolved.

    Attributes:
        subject: the object that the event was about.
        owner: the root owner; None if it is gone.
        runner: the object that makes the Jobs or pods: the owner itself, or a TrainJob's JobSet.
        workload: the Workload under the name that Muster gives it.
        other_workloads: Workloads that Muster did not make and whose controllerRef has the owner's name.
        other_owner: another existing owner whose UID is in the labels of `workload`; None if there is none.
        sources: the policy sources of the owner, highest first.
        groups_of_jobs: the groups of its Jobs by replicatedJob, for a JobSet that has no labels itself.
        as_of: the newest resourceVersion among the subject, the owner and its runner.
        pod_group: the subject, if it is a PodGroup.
    """

    subject: ObjectRef
    owner: OwnerObject | None = None
    runner: OwnerObject | None = None
    namespace: Namespace | None = None
    api: SchedulingApi = field(default_factory=SchedulingApi)
    workload: Workload | None = None
    other_workloads: tuple[Workload, ...] = ()
    other_owner: OwnerObject | None = None
    sources: tuple[PolicySource, ...] = ()
    groups_of_jobs: Mapping[str, str] = field(default_factory=dict)
    as_of: str = ""
    pod_group: PodGroup | None = None

    @property
    def unmarked(self) -> bool:
        """Whether its namespace is opted in, but a template has no group label, as one created before."""
        labels = self.namespace.metadata.labels if self.namespace is not None else {}
        opted_in = labels.get(group_labels.NAMESPACE_SWITCH) == "enabled"
        return opted_in and self.runner is not None and self.runner.unmarked and not self.groups_of_jobs

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """The Workloads that may be the user's own: `other_workloads`, and `workload` if it exists."""
        return self.other_workloads if self.workload is None else (*self.other_workloads, self.workload)

    @property
    def musters_workload(self) -> Workload | None:
        """The Workload, if Muster created it for this owner."""
        workload, owner = self.workload, self.owner
        if workload is None or owner is None or not belongs_to(workload.metadata.labels, owner.metadata.uid):
            return None
        return workload


@dataclass(frozen=True)
class OwnedGroup:
    """One PodGroup or CompositePodGroup of an owner's tree.

    Attributes:
        above: the names of the CompositePodGroups above it, from below.
    """

    group: Group
    suffix: str
    name: str
    above: tuple[str, ...]

    @property
    def parent(self) -> str:
        """The name of the CompositePodGroup above it; "" for a root."""
        return self.above[0] if self.above else ""

    @property
    def composite(self) -> bool:
        """Whether it is a CompositePodGroup."""
        return bool(self.group.children)

    @property
    def key(self) -> GroupKey:
        """Its kind and name."""
        return (COMPOSITE_POD_GROUPS if self.composite else POD_GROUPS).kind, self.name

    @property
    def priority_class_name(self) -> str:
        """The priority class of the pods in it; the scheduler compares both."""
        return self.group.priority_class_name if self.composite else self.group.priority_class_at(self.suffix)


@dataclass(frozen=True)
class ResolvedOwner:
    """An owner whose pods Muster groups.

    Attributes:
        pod_sets: its pod templates; none if they ask for too many groups.
        tree: its groups; empty if they are too many.
        failure: why the groups cannot be made; None if they can.
        own: the Workload of the user's own that takes the place of Muster's.
        warnings: how its gangs can block those of another owner, and why an eviction would end its Jobs.
    """

    live: LiveOwner
    owner: OwnerObject
    pod_sets: OwnerPodSets
    tree: tuple[Group, ...]
    failure: GroupingFailure | None = None
    own: Workload | None = None
    policy: EffectivePolicy = DEFAULT
    warnings: tuple[tuple[Reason, str], ...] = ()

    @property
    def root(self) -> ObjectRef:
        """The root owner."""
        return self.owner.ref

    @property
    def api(self) -> SchedulingApi:
        """The versions of scheduling.k8s.io that the API server serves."""
        return self.live.api

    @property
    def why_no_groups(self) -> GroupingFailure | None:
        """Why the owner gets no groups: its failure, or that its Workload's name is taken; None if neither.

        Two living owners never get a Workload of the same name from Muster. That of an owner that is being
        deleted, as of an earlier TrainJob of a JobSet's name, goes with it.
        """
        workload, holder = self.live.workload, self.live.other_owner
        if self.failure is not None or workload is None or self.own is not None:
            return self.failure
        if not is_musters(workload.metadata.labels):
            named = workload.spec.controller_ref
            held_by = f"controllerRef {named.kind} {named.name}"
        elif holder is not None and not (
            holder.being_deleted and workload_name(holder) == workload.metadata.name
        ):
            held_by = f"the labels of {holder.ref}"
        else:
            return None
        message = f"Workload {workload.metadata.name} exists and has {held_by}"
        return GroupingFailure(Reason.WORKLOAD_DOES_NOT_FIT, message)

    @property
    def workload(self) -> Workload | None:
        """The Workload of whose templates its groups are made: the user's own, or the one under its name."""
        return self.own or self.live.workload

    def stored_workload(self) -> Workload | NoOp:
        """Return that Workload; a NoOp if there is none, or if Muster made it for another owner."""
        workload = self.workload
        if workload is None or workload.being_deleted:
            return NoOp(Reason.WAITING_FOR_POD_GROUP, f"{self.root} has no Workload yet")
        if self.own is None and self.live.musters_workload is None:
            return NoOp(Reason.NOT_MUSTERS, f"{workload.ref} does not belong to {self.root}")
        return workload

    @property
    def suspended(self) -> bool:
        """Whether it, or its JobSet, is suspended, so that it has no pods."""
        return self.owner.spec.suspend or (self.live.runner or self.owner).spec.suspend

    @cached_property
    def owned(self) -> tuple[OwnedGroup, ...]:
        """The PodGroups and CompositePodGroups of its tree, parents before children."""
        return tuple(one for root in self.tree for one in self._owned(root))

    def _owned(self, group: Group, *above: Group) -> Iterator[OwnedGroup]:
        name_of = self.pod_sets.pod_group_name
        for suffix in group.instances if group.children else group.sizes:
            names = (name_of(one.name, one.shape.suffix_above(group.shape, suffix)) for one in above)
            yield OwnedGroup(group, suffix, name_of(group.name, suffix), tuple(names))
        for child in group.children:
            yield from self._owned(child, group, *above)

    @cached_property
    def pod_groups(self) -> tuple[OwnedGroup, ...]:
        """The PodGroups that it should have."""
        return tuple(one for one in self.owned if not one.composite)

    @cached_property
    def composites(self) -> tuple[OwnedGroup, ...]:
        """The CompositePodGroups of its tree."""
        return tuple(one for one in self.owned if one.composite)

    def pod_groups_of(self, owned: OwnedGroup) -> tuple[OwnedGroup, ...]:
        """Return the PodGroups below one of its groups; a PodGroup itself."""
        if not owned.composite:
            return (owned,)
        return tuple(one for one in self.pod_groups if owned.name in one.above)

    def composite_names(self) -> Iterator[str]:
        """Yield the names of its CompositePodGroups; those of a user's own Workload are not in the tree."""
        yield from (one.name for one in self.composites)
        for template, _ in self.own.hierarchy() if self.own else ():
            if isinstance(template, CompositePodGroupTemplate):
                yield self.pod_sets.pod_group_name(template.name, "")

    @cached_property
    def groups(self) -> Mapping[str, Group]:
        """All groups of the tree by name."""
        return {group.name: group for root in self.tree for group in root.with_all_below()}


@dataclass(frozen=True)
class OwnerGroups:
    """An owner and its existing objects."""

    resolved: ResolvedOwner | NoOp
    members: LiveMembers


@dataclass(frozen=True)
class IdentifiedOwner:
    """An owner whose pods Muster groups, before its groups are known."""

    live: LiveOwner
    owner: OwnerObject
    pod_sets: OwnerPodSets
    policy: EffectivePolicy
    own: Workload | GroupingFailure | None
    too_many: GroupingFailure | None

    def needs_priority_classes(self, *, to_create: bool = False) -> bool:
        """Whether the values of PriorityClasses can change the result; settled once the Workload exists.

        Groups that are to be created repeat the preemptionPolicy of their class.
        """
        if self.live.musters_workload is not None:
            return False
        if to_create and not isinstance(self.own, Workload) and self.live.api.served:
            return True
        if self.policy.workload.sets_preemption and self.own is None and self.live.api.served:
            return True
        labelled = [pod_set for pod_set in self.pod_sets.pod_sets if pod_set.labels]
        return len({pod_set.priority for pod_set in labelled}) > 1


def identify(live: LiveOwner) -> IdentifiedOwner | NoOp:
    """Return the owner, its pod sets and its policy, or the first reason, in order, to leave it alone."""
    skipped = reason_to_skip(live)
    if skipped is not None or live.owner is None or live.runner is None or live.namespace is None:
        return skipped or NoOp(Reason.DELETED, f"{live.subject} does not exist")
    owner, runner = live.owner, live.runner
    policy = resolve_policy(live.sources, owner)
    if policy.other == "upstream":
        return NoOp(Reason.UPSTREAM_GROUPS, f"{policy.where}: {UPSTREAM_GROUPS}")
    # Skip if no pod template names a group.
    templates = known_kind_of(runner).pod_sets(runner, live.groups_of_jobs)
    pod_sets = OwnerPodSets(runner.ref, workload_name(owner), templates)
    unlabelled = _unlabelled(pod_sets, owner)
    if unlabelled is not None:
        return replace(unlabelled, message=f"{owner.ref}: {_CREATED_BEFORE}") if live.unmarked else unlabelled
    too_many = validation.exceeds_limits(pod_sets)
    if too_many is not None:  # neither its groups nor their names can be listed
        pod_sets = replace(pod_sets, pod_sets=())
    # Skip if the Job controller made a Workload for the owner.
    own = own_workload(owner, live.workloads) if live.api.served and live.workloads else None
    if isinstance(own, NoOp):
        return own
    # Skip if the policy hands the pods to another scheduler, unless the user made a Workload for the owner.
    if policy.other and own is None and live.api.served:
        return NoOp(Reason.OTHER_SCHEDULER, f"{policy.where}: {policy.other} groups these pods")
    return IdentifiedOwner(live, owner, pod_sets, policy, own, too_many)


def resolve(identified: IdentifiedOwner, classes: Collection[PriorityClass] = ()) -> ResolvedOwner:
    """Return the groups of an owner, or why they cannot be made."""
    identified = replace(identified, pod_sets=identified.pod_sets.with_classes(classes))
    if not identified.live.api.served:
        return _failed(identified, GroupingFailure(Reason.API_NOT_SERVED, HOW_TO_SWITCH_ON))
    own = identified.own
    resolved = _under_policy(identified) if own is None else _under_own_workload(identified, own)
    if identified.too_many is not None:
        return replace(resolved, failure=identified.too_many)
    asked = own is not None or bool(resolved.policy.workload.groups)
    return replace(resolved, warnings=tuple(validation.warnings(resolved.tree, asked=asked)))


def reason_to_skip(live: LiveOwner) -> NoOp | None:
    """Return the first reason, in order, to skip an owner whatever its pod templates and policies say."""
    owner = live.owner
    if owner is None:
        return NoOp(Reason.DELETED, f"{live.subject} does not exist, or has another UID")
    if owner.being_deleted or live.namespace is None or live.namespace.being_deleted:
        return NoOp(Reason.DELETED, f"{owner.ref} is being deleted")
    if owner.finished or (live.runner or owner).finished:
        return NoOp(Reason.FINISHED, f"{owner.ref} has ended")
    for managed in (owner, live.runner or owner):
        if managed.spec.managed_by != known_kind_of(managed).controller:
            message = f"{managed.ref}: spec.managedBy is {managed.spec.managed_by}"
            return NoOp(Reason.MANAGED_ELSEWHERE, message)
    if live.runner is None:
        return NoOp(Reason.AWAITING_JOBSET, f"{owner.ref} has no JobSet yet")
    if live.runner.being_deleted:
        return NoOp(Reason.DELETED, f"{live.runner.ref} is being deleted")
    if not LABEL_VALUE.fullmatch(live.runner.metadata.name):
        return NoOp(Reason.CANNOT_BE_GROUPED, f"{live.runner.ref}: its pods cannot have the name as a label")
    return _grouped_upstream(owner) or _grouped_upstream(live.runner)


def _failed(identified: IdentifiedOwner, failure: GroupingFailure) -> ResolvedOwner:
    tree = default_tree(identified.pod_sets)
    return ResolvedOwner(identified.live, identified.owner, identified.pod_sets, tree, failure)


def _under_own_workload(identified: IdentifiedOwner, own: Workload | GroupingFailure) -> ResolvedOwner:
    if isinstance(own, GroupingFailure):
        return _failed(identified, own)
    tree = own_tree(own, default_tree(identified.pod_sets))
    composites = sum(isinstance(template, CompositePodGroupTemplate) for template, _ in own.hierarchy())
    failure = misfit(own, tree, identified.live.api) or validation.too_many_composites(
        f"Workload {own.metadata.name}", composites
    )
    return ResolvedOwner(identified.live, identified.owner, identified.pod_sets, tree, failure, own)


def _under_policy(identified: IdentifiedOwner) -> ResolvedOwner:
    live, policy = identified.live, identified.policy
    tree = policy.failure or policy_tree(identified.pod_sets, policy)
    if isinstance(tree, GroupingFailure):
        return replace(_failed(identified, tree), policy=replace(policy, failure=tree))
    failure = validation.validate_tree(tree, kept=live.musters_workload is not None)
    path = path_of(failure.group, policy.workload.groups) if failure else ""
    if failure and path:
        failure = replace(failure, message=f"{policy.where}: {path}: {failure.message}")
    composites = sum(
        len(group.instances) for root in tree for group in root.with_all_below() if group.children
    )
    failure = failure or validation.too_many_composites(f"{policy.where}: workload.groups", composites)
    if any(group.children for group in tree) and not live.api.composites:
        message = f"{policy.where}: workload.groups: groups of groups need {NEEDED_BY_COMPOSITES}"
        failure = GroupingFailure(Reason.INVALID_POLICY, message)
    return ResolvedOwner(live, identified.owner, identified.pod_sets, tree, failure, None, policy)


def _grouped_upstream(owner: OwnerObject) -> NoOp | None:
    if owner.spec.scheduling is not None:
        return NoOp(Reason.UPSTREAM_GROUPS, f"{owner.ref} has spec.scheduling")
    if group_labels.UPSTREAM_TEMPLATE in owner.metadata.annotations:
        return NoOp(
            Reason.UPSTREAM_GROUPS, f"{owner.ref} has the annotation {group_labels.UPSTREAM_TEMPLATE}"
        )
    return None


def _unlabelled(pod_sets: OwnerPodSets, owner: OwnerObject) -> NoOp | None:
    if any(pod_set.labels for pod_set in pod_sets.pod_sets):
        return None
    controller = owner.metadata.controller
    if controller is not None and known_kind_of(owner).is_job:
        return NoOp(
            Reason.NOT_MARKED,
            f"{owner.ref} belongs to {controller.kind} {controller.name} "
            f"and its pod template has no label {group_labels.GROUP}",
        )
    reasons = {pod_set.ungrouped for pod_set in pod_sets.pod_sets if pod_set.ungrouped}
    reason = min(reasons - {Reason.NOT_MARKED}, default=Reason.NOT_MARKED)
    why = _CANNOT_BE_GROUPED if reason == Reason.CANNOT_BE_GROUPED else ""
    return NoOp(reason, f"{pod_sets.named_by} has no pod template that Muster groups{why}")

"""Whether an owner's pods are Muster's to group, and whose Workload says how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.objects.jobs import (
    JOB_CONTROLLER,
    JOBSET_CONTROLLER,
    TRAINJOB_CONTROLLER,
    Job,
    JobSet,
    TrainJob,
)
from muster.objects.meta import ObjectRef
from muster.objects.scheduling import CompositePodGroupTemplate, Workload
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.policy import bodies, marks
from muster.policy.flaws import crowd_of, flaw_of
from muster.policy.groups import GivenUp, Group, Place, tree_of
from muster.policy.homes import DEFAULT, Broken, Ruling, rule
from muster.policy.kinds import Gang, gang_of
from muster.policy.model import Nothing, Observed, Owner
from muster.policy.names import job_workload_name
from muster.policy.reasons import Reason
from muster.policy.tree import path_of, tree_for

_COMPOSITES = "CompositePodGroup (Kubernetes 1.37, scheduling.k8s.io/v1alpha3, its feature gate)"
_CONTROLLERS = {TrainJob: TRAINJOB_CONTROLLER, JobSet: JOBSET_CONTROLLER, Job: JOB_CONTROLLER}


@dataclass(frozen=True)
class Considered:
    """An owner whose pods are Muster's to group.

    Attributes:
        gang: its pod sets.
        tree: its groups; empty where they are too many to look at.
        flaw: why they cannot be had; None where they can.
        own: the Workload of the user's own that says how; None where Muster's does.
        ruling: the policy and where it stands.
    """

    gang: Gang
    tree: tuple[Group, ...]
    flaw: GivenUp | None
    own: Workload | None
    ruling: Ruling = DEFAULT

    def places(self) -> Iterator[tuple[Place, str]]:
        """Every PodGroup the owner should have: its place in the tree and its name."""
        for root in self.tree:
            for leaf in root.leaves():
                for suffix in leaf.sizes:
                    yield (leaf.name, suffix), self.gang.pod_group_name(leaf.name, suffix)

    def composite_names(self) -> Iterator[str]:
        """Every CompositePodGroup the owner should have, by the user's own Workload where that rules."""
        if self.own is not None:
            own = (template for template, _ in self.own.hierarchy())
            names = [template.name for template in own if isinstance(template, CompositePodGroupTemplate)]
        else:
            names = [group.name for root in self.tree for group in root.composites()]
        return (self.gang.pod_group_name(name, "") for name in names)


def consider(observed: Observed) -> Considered | Nothing:
    """The groups of an owner, or the reason to leave it alone."""
    left = left_alone(observed)
    if left is not None or observed.owner is None or observed.namespace is None:
        return left or Nothing(Reason.OBJECT_GONE, f"{observed.subject} does not exist")
    ruling = rule(observed.homes, observed.owner)
    if isinstance(ruling, Ruling) and ruling.other == "upstream":
        return Nothing(Reason.UPSTREAM_GROUPS, f"{ruling.where}: upstream groups these pods")
    labels = observed.namespace.metadata.labels
    gang = gang_of(observed.owner, observed.jobset, labels, observed.priority_classes)
    unmarked = _unmarked(gang, observed.owner)
    if unmarked is not None:
        return unmarked
    crowd = crowd_of(gang)
    if crowd is None:
        return _grouped(observed, gang, ruling)
    # Without pod sets nothing of it can be spelled out, neither groups nor names.
    considered = _grouped(observed, replace(gang, pod_sets=()), ruling)
    if isinstance(considered, Nothing) or not observed.scheduling.served:
        return considered
    return replace(considered, flaw=crowd)


def _grouped(observed: Observed, gang: Gang, ruling: Ruling | Broken) -> Considered | Nothing:
    if not observed.scheduling.served:
        return Considered(gang, tree_of(gang), GivenUp(Reason.API_NOT_SERVED, HOW_TO_SWITCH_ON), None)
    own = own_workload(observed, gang.root)
    if isinstance(own, Nothing):
        return own
    if own is not None:
        return _under_own_workload(observed, gang, own)
    return _under_policy(observed, gang, ruling)


def _under_own_workload(observed: Observed, gang: Gang, own: Workload | GivenUp) -> Considered:
    tree = tree_of(gang)
    if isinstance(own, GivenUp):
        return Considered(gang, tree, own, None)
    return Considered(gang, tree, _misfit(own, tree) or _switched_off(own, observed), own)


def _under_policy(observed: Observed, gang: Gang, ruling: Ruling | Broken) -> Considered | Nothing:
    if isinstance(ruling, Broken):
        return Considered(gang, tree_of(gang), ruling.why, None, ruling.ruling)
    if ruling.workload is None:
        return Nothing(Reason.OTHER_SCHEDULER, f"{ruling.where}: {ruling.other} groups these pods")
    tree = tree_for(gang, ruling.workload, ruling.where, kept=ruling.kept)
    if isinstance(tree, GivenUp):
        return Considered(gang, tree_of(gang), tree, None, ruling)
    flaw = flaw_of(tree, kept=_made(observed))
    path = path_of(flaw.group, ruling.workload.groups) if flaw else ""
    if flaw and path:
        flaw = replace(flaw, message=f"{ruling.where}: {path}: {flaw.message}")
    if any(group.children for group in tree) and not observed.scheduling.composites:
        message = f"{ruling.where}: workload.groups: groups of groups need {_COMPOSITES}"
        flaw = GivenUp(Reason.INVALID_POLICY, message)
    return Considered(gang, tree, flaw, None, ruling)


def needs_priority_classes(observed: Observed, *, to_make: bool = False) -> bool:
    """Whether an owner's pods name several PriorityClasses, or its policy says what theirs has to say.

    Once there is a Workload for it, that was judged.

    Args:
        observed: without them.
        to_make: whether what is missing will be made, which has to say whether its class preempts.
    """
    considered = consider(observed)
    if isinstance(considered, Nothing) or _made(observed):
        return False
    if to_make and considered.own is None and observed.scheduling.served:
        return True
    groups = (group for root in considered.tree for group in root.with_all_below())
    if any("preemptionPolicy" in group.settings for group in groups):
        return True
    marked = [pod_set for pod_set in considered.gang.pod_sets if pod_set.mark]
    return len({pod_set.priority for pod_set in marked}) > 1


def _made(observed: Observed) -> bool:
    """Whether Muster's Workload for the owner exists."""
    made, owner = observed.workload, observed.owner
    return (
        made is not None and owner is not None and bodies.belongs_to(made.metadata.labels, owner.metadata.uid)
    )


def _switched_off(workload: Workload | None, observed: Observed) -> GivenUp | None:
    """Groups of groups that are stored although their kind is no longer served."""
    if workload is None or not workload.composite or observed.scheduling.composites:
        return None
    message = f"Workload {workload.metadata.name} has groups of groups, which need {_COMPOSITES}"
    return GivenUp(Reason.API_NOT_SERVED, message)


def left_alone(observed: Observed) -> Nothing | None:
    """Why an owner is not grouped at all, whatever its pod templates say; None where they decide."""
    owner, subject = observed.owner, observed.subject
    if owner is None:
        return Nothing(Reason.OBJECT_GONE, f"{subject} does not exist, or another one has its name")
    if owner.being_deleted or observed.namespace is None or observed.namespace.being_deleted:
        return Nothing(Reason.DELETED, f"{owner.ref} is being deleted")
    if owner.finished:
        return Nothing(Reason.FINISHED, f"{owner.ref} has ended")
    for managed in (owner, observed.jobset or owner):
        if managed.spec.managed_by != _CONTROLLERS[type(managed)]:
            message = f"{managed.ref}: spec.managedBy is {managed.spec.managed_by}"
            return Nothing(Reason.MANAGED_ELSEWHERE, message)
    if isinstance(owner, TrainJob) and observed.jobset is None:
        return Nothing(Reason.AWAITING_JOBSET, f"{owner.ref} has no JobSet yet")
    runs = observed.jobset or owner
    if runs.being_deleted:
        return Nothing(Reason.DELETED, f"{runs.ref} is being deleted")
    return _grouped_upstream(owner) or _grouped_upstream(runs)


def workload_name(root: ObjectRef) -> str:
    """The name of the Workload Muster makes for an owner."""
    return job_workload_name(root.name, root.uid) if root.kind == "Job" else root.name


def own_workload(observed: Observed, root: ObjectRef) -> Workload | GivenUp | Nothing | None:
    """The Workload a user made for the owner, whatever its name; two of them cannot both rule."""
    group = root.api_version.rpartition("/")[0]
    candidates = [*observed.other_workloads, *([observed.workload] if observed.workload else [])]
    found: dict[str, Workload] = {}
    for workload in candidates:
        named = workload.spec.controller_ref
        names_owner = (named.api_group, named.kind, named.name) == (group, root.kind, root.name)
        if not names_owner or bodies.is_musters(workload.metadata.labels):
            continue
        if root.kind != "Job" or not _made_by_job_controller(workload, root):
            found[workload.metadata.name] = workload
        elif workload.metadata.name == workload_name(root):
            message = f"the Job controller made Workload {workload.metadata.name}"
            return Nothing(Reason.UPSTREAM_GROUPS, message)
    if len(found) > 1:
        return GivenUp(
            Reason.TWO_WORKLOADS,
            f"Workloads {', '.join(sorted(found))} both have controllerRef {root.kind} {root.name}",
        )
    return next(iter(found.values()), None)


def _made_by_job_controller(workload: Workload, root: ObjectRef) -> bool:
    """Its one template is named `<job>-pgt-0` (pkg/controller/job/job_scheduling_manager.go, v1.37.1).

    Under another name than this Job's it was made for an earlier Job, whose deletion left it behind.
    """
    return [template.name for template in workload.spec.pod_group_templates] == [f"{root.name}-pgt-0"]


def _grouped_upstream(owner: Owner) -> Nothing | None:
    if owner.spec.scheduling is not None:
        return Nothing(Reason.UPSTREAM_GROUPS, f"{owner.ref} has spec.scheduling")
    if marks.UPSTREAM_TEMPLATE in owner.metadata.annotations:
        return Nothing(Reason.UPSTREAM_GROUPS, f"{owner.ref} is annotated {marks.UPSTREAM_TEMPLATE}")
    return None


def _unmarked(gang: Gang, owner: Owner) -> Nothing | None:
    if any(pod_set.mark for pod_set in gang.pod_sets):
        return None
    controller = owner.metadata.controller
    if controller is not None and isinstance(owner, Job):
        return Nothing(
            Reason.OWNED_BY_ANOTHER,
            f"{owner.ref} belongs to {controller.kind} {controller.name} and is not marked",
        )
    reasons = {pod_set.unmarked for pod_set in gang.pod_sets if pod_set.unmarked}
    told = reasons - {Reason.NOT_MARKED, Reason.OPTED_OUT} or reasons - {Reason.NOT_MARKED}
    reason = min(told) if told else Reason.NOT_MARKED
    return Nothing(reason, f"no pod template of {gang.named_by} is Muster's to group")


def _misfit(own: Workload, tree: tuple[Group, ...]) -> GivenUp | None:
    templates = {
        template.name
        for template, _ in own.hierarchy()
        if not isinstance(template, CompositePodGroupTemplate)
    }
    missing = [group.name for group in tree if group.name not in templates]
    if not missing:
        return None
    return GivenUp(
        Reason.WORKLOAD_DOES_NOT_FIT,
        f"Workload {own.metadata.name} has no template for {', '.join(missing)}, "
        "groups that pods are stamped with",
    )

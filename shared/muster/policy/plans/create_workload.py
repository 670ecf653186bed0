"""create_workload: the groups of an owner compiled into its Workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from muster.objects.meta import ObjectRef, find_condition
from muster.objects.resources import WORKLOADS
from muster.objects.scheduling import Workload
from muster.policy.group_labels import belongs_to, controller_reference, owner_labels
from muster.policy.model import Action, Decision, NoOp, Plan, Reply, Verb, as_refused
from muster.policy.owner_status.conditions import READY, condition_type
from muster.policy.owners import kind_of
from muster.policy.owners.job import has_foreign_labels
from muster.policy.owners.kind import NEVER, OwnerObject
from muster.policy.plans import fallback
from muster.policy.plans.manifests import create_event
from muster.policy.plans.orphans import OrphanInputs, plan_orphan
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.source import DEFAULT, policy_annotations
from muster.policy.tree.groups import Group
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-create-workload"
_MAY_BE_STAMPED = frozenset({Reason.UPSTREAM_GROUPS, Reason.MANAGED_ELSEWHERE, Reason.OTHER_SCHEDULER})
"""Reasons to skip an owner that stamp-pods cannot see, so that it may stamp the pods."""


@dataclass(frozen=True)
class WorkloadInputs:
    """The inputs of create_workload.

    Attributes:
        live: the owner as read from the cluster.
        resolved: its groups, or why it is left alone.
        members: its pods and groups; None if no fallback PodGroup can be needed.
    """

    live: LiveOwner
    resolved: ResolvedOwner | NoOp
    members: LiveMembers | None = None


def plan_workload(inputs: WorkloadInputs | OrphanInputs, now: datetime) -> Decision:
    """Create the Workload of an owner, once; or fallback PodGroups if its groups cannot be made."""
    if isinstance(inputs, OrphanInputs):
        return plan_orphan(inputs)
    resolved, members = inputs.resolved, inputs.members
    if members is None:  # no pod of the owner can need a fallback PodGroup
        return resolved if isinstance(resolved, NoOp) else _for_owner(inputs, resolved, now)
    if isinstance(resolved, NoOp):
        return fallback.for_stamped_pods(inputs.live.owner, resolved, members, COMPONENT, now)
    failure = resolved.why_no_groups
    decision = (
        _for_owner(inputs, resolved, now)
        if failure is None
        else fallback.give_up(resolved, members, failure, COMPONENT, now)
    )
    return fallback.with_groups_of_strays(resolved, members, decision, COMPONENT, now)


def as_carried_out(plan: Plan) -> Plan:
    """Return the plan with the reason RefusedByApi if it was to create a Workload and did not."""
    created = any(action.target.kind == WORKLOADS.kind for action in plan.actions)
    if plan.reply is None or plan.reason != Reason.WORKLOAD_CREATED or created:
        return plan
    return as_refused(plan, "gave-up")


def needs_members(inputs: WorkloadInputs) -> bool:
    """Whether plan_workload may create fallback PodGroups, for which it needs the owner's pods and groups."""
    resolved = inputs.resolved
    if isinstance(resolved, NoOp):
        return _may_have_stamped_pods(inputs.live, resolved)
    failed = resolved.why_no_groups is not None or _may_have_been_refused(inputs.live, resolved.owner)
    return failed or _may_have_strays(resolved)


def _may_have_been_refused(live: LiveOwner, owner: OwnerObject) -> bool:
    """Whether the owner has no Workload although emit_conditions has seen that its groups are missing."""
    ready = find_condition(owner.status.conditions, condition_type(owner, READY))
    return live.workload is None and ready is not None and ready.get("status") == "False"


def _may_have_stamped_pods(live: LiveOwner, skipped: NoOp) -> bool:
    """Whether pods of a skipped owner may be stamped all the same.

    NotMarked: the namespace lost its label, but Jobs of a JobSet that were labelled before still create
    stamped pods.
    """
    kind = None if live.runner is None else kind_of(live.runner)
    if skipped.reason == Reason.NOT_MARKED:
        return kind is not None and not kind.is_job
    return skipped.reason in _MAY_BE_STAMPED


def _may_have_strays(resolved: ResolvedOwner) -> bool:
    """Whether some of an owner's pods may be stamped although Muster does not group their template.

    stamp-pods sees the labels of a pod, but not that the pod's Job is grouped upstream, nor that the
    namespace lost its label since that Job was made, nor that the labels are those of another owner.
    """
    unseen = {Reason.NOT_MARKED, Reason.UPSTREAM_GROUPS}
    return any(
        pod_set.ungrouped in unseen or has_foreign_labels(pod_set, resolved.owner)
        for pod_set in resolved.pod_sets.pod_sets
    )


def _for_owner(inputs: WorkloadInputs, resolved: ResolvedOwner, now: datetime) -> Decision:
    if resolved.own is not None:
        return NoOp(
            Reason.OWN_WORKLOAD, f"Workload {resolved.own.metadata.name} applies and is never changed"
        )
    if inputs.live.workload is not None:
        return _name_in_use(inputs, resolved, inputs.live.workload)
    if inputs.members is not None and fallback.stand_for_workload(resolved, inputs.members):
        return NoOp(Reason.REFUSED_BY_API, f"all groups of {resolved.root} are fallback PodGroups")
    name = resolved.pod_sets.workload_name
    members = inputs.members or LiveMembers()
    instead = partial(fallback.in_place_of_workload, resolved, members, COMPONENT, now)
    sizes = ", ".join(
        f"{group.name} ({'gang of ' + str(group.template_min_count) if group.gang else 'basic'})"
        for group in resolved.tree
    )
    return Plan(
        Reason.WORKLOAD_CREATED,
        f"Workload {name} for {resolved.root}: {sizes}",
        (replace(_create_workload(resolved, name), instead=instead), *_warnings(resolved, now)),
        Reply("created", resolved.root, {"workload": name}),
    )


def _warnings(resolved: ResolvedOwner, now: datetime) -> Iterator[Action]:
    """Yield an Event about a group that holds its nodes while another one waits for it."""
    for stage in resolved.stages[:1]:
        yield create_event(
            resolved.root,
            component=COMPONENT,
            warning=True,
            reason=Reason.HOLDS_WHILE_WAITING,
            message=str(stage),
            now=now,
        )


def _name_in_use(inputs: WorkloadInputs, resolved: ResolvedOwner, workload: Workload) -> Decision:
    if workload.being_deleted:
        return NoOp(Reason.BEING_DELETED, f"{workload.ref} is being deleted", requeue=True)
    if belongs_to(workload.metadata.labels, resolved.root.uid):
        return NoOp(Reason.UP_TO_DATE, f"{workload.ref} exists")
    if inputs.live.name_holder is not None:
        return NoOp(
            Reason.WORKLOAD_NAME_TAKEN,
            f"{workload.ref} belongs to {inputs.live.name_holder.ref}, which is being deleted",
            requeue=True,
        )
    return Plan(
        Reason.LEFTOVER_REMOVED,
        f"{workload.ref} is left over from an earlier owner of that name",
        (Action(Verb.DELETE, replace(workload.ref, uid=workload.metadata.uid)),),
        requeue=True,
    )


def _create_workload(resolved: ResolvedOwner, name: str) -> Action:
    """Create the Workload of an owner, with one template for each group.

    A priority class is in the templates only if all groups share it: the API refuses a Workload whose
    templates differ (pkg/apis/scheduling/validation, Kubernetes v1.37.1).
    """
    root = resolved.root
    pod_sets = (pod_set for leaf in resolved.leaves() for pod_set in leaf.pod_sets)
    classes = {pod_set.priority.name for pod_set in pod_sets}
    shared_class = classes.pop() if len(classes) == 1 else ""
    body: dict[str, Any] = {
        "apiVersion": WORKLOADS.api_version,
        "kind": WORKLOADS.kind,
        "metadata": {
            "name": name,
            "namespace": root.namespace,
            "labels": owner_labels(root),
            "ownerReferences": [controller_reference(root)],
        },
        "spec": {
            "controllerRef": {
                "apiGroup": root.api_version.rpartition("/")[0],
                "kind": root.kind,
                "name": root.name,
            },
            **_templates(resolved.tree, shared_class),
        },
    }
    if resolved.policy != DEFAULT:
        body["metadata"]["annotations"] = policy_annotations(resolved.policy)
    target = ObjectRef(WORKLOADS.api_version, WORKLOADS.kind, root.namespace, name)
    return Action(Verb.CREATE, target, body)


def _templates(groups: tuple[Group, ...], priority_class: str) -> dict[str, Any]:
    """Return the two template lists of one level, without empty ones."""
    leaves = [_template(group, priority_class) for group in groups if not group.children]
    composites = [_template(group, priority_class) for group in groups if group.children]
    lists = {"podGroupTemplates": leaves, "compositePodGroupTemplates": composites}
    return {name: templates for name, templates in lists.items() if templates}


def _template(group: Group, priority_class: str) -> dict[str, Any]:
    """Return the template of a group, with all settings that its PodGroups copy.

    With the gate PodGroupPreemptionPolicy a group without a preemptionPolicy gets the default one and is then
    refused if its class has another (plugin/pkg/admission/priority, Kubernetes v1.37.1, seen).
    """
    count = "minGroupCount" if group.children else "minCount"
    policy = {"gang": {count: group.template_min_count}} if group.gang else {"basic": {}}
    preemption = {"preemptionPolicy": NEVER} if group.never_preempts else {}
    disruption = {} if group.disruption_mode is None else {"disruptionMode": group.disruption_mode}
    template: dict[str, Any] = {
        "name": group.name,
        "schedulingPolicy": policy,
        **disruption,
        **preemption,
        **group.settings,
    }
    if priority_class:
        template["priorityClassName"] = priority_class
    return template | _templates(group.children, priority_class)

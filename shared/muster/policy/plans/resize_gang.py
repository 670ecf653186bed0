"""resize_gang: minCount follows the pods that are still to run, and minGroupCount the child groups.

A CompositePodGroup's spec is fixed, so one of another minGroupCount takes its place; it has no finalizer,
running pods are not touched, and waiting pods are placed when it exists again. A stop in between leaves child
groups without their parent, from which the next delivery knows that one is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from muster.objects.scheduling import (
    AnyGroup,
    CompositePodGroupTemplate,
    Gang,
    SchedulingPolicy,
    Workload,
    WorkloadSpec,
)
from muster.policy.group_labels import belongs_to
from muster.policy.groups import manifests
from muster.policy.groups.manifests import FALLBACK
from muster.policy.groups.wanted_groups import (
    SchedulingTimeout,
    is_of_wrong_size,
    only_flags,
    scheduling_timeout,
    wanted_counts,
)
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Reply, Verb
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups, ResolvedOwner
from muster.policy.status.conditions import SCHEDULED, stored_condition
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-resize-gang"


def plan_resize(inputs: OwnerGroups, now: datetime) -> Decision:
    """Set new counts of an owner's gangs in its Workload's templates and its groups.

    The groups of an owner that has ended, or is suspended and has no pods left, are deleted, which frees the
    devices of their claims (KEP-5729). Not before: a group that pods name would stay, being deleted, in the
    way of those of a resumption (podgroup_protection_controller.go, Kubernetes v1.37.1). The reply lets
    create_pod_groups make the groups of an owner that runs without them.
    """
    resolved, members = inputs.resolved, inputs.members
    named = {pod.pod_group_name for pod in members.pods if not pod.finished}
    groups = [
        group
        for group in members.existing.values()
        if not group.being_deleted or group.metadata.name in named
    ]
    if isinstance(resolved, NoOp):
        return _deletion(groups, resolved.message) or resolved
    decision = _plan_sizes(resolved, members, now)
    if resolved.suspended:
        if named or resolved.failure:
            return decision
        made_again = [group for group in groups if belongs_to(group.metadata.labels, resolved.root.uid)]
        made_again = [group for group in made_again if FALLBACK not in group.metadata.annotations]
        return _deletion(made_again, f"{resolved.root} is suspended") or decision
    wanted = {*resolved.composite_names(), *(one.name for one in resolved.pod_groups)}
    missing = sorted(wanted - {group.metadata.name for group in groups})
    if not missing or resolved.failure or not (resolved.own or resolved.live.musters_workload):
        return decision
    if isinstance(decision, NoOp):
        decision = NoOp(Reason.WAITING_FOR_POD_GROUP, f"{resolved.root} lacks {', '.join(missing)}")
    return replace(decision, reply=Reply("missing", resolved.root, {"podGroups": missing}))


def _deletion(groups: Sequence[AnyGroup], why: str) -> Plan | None:
    deletions = tuple(Action(Verb.DELETE, group.ref) for group in groups)
    names = ", ".join(group.metadata.name for group in groups)
    return Plan(Reason.ORPHANS_REMOVED, f"{names}: {why}", deletions) if groups else None


def _plan_sizes(resolved: ResolvedOwner, members: LiveMembers, now: datetime) -> Decision:
    if resolved.failure is not None:
        return NoOp(resolved.failure.reason, resolved.failure.message)
    if resolved.own is not None:
        name = resolved.own.metadata.name
        return NoOp(Reason.NOT_MUSTERS, f"Workload {name} applies; scaling changes no minCount")
    workload = resolved.stored_workload()
    if isinstance(workload, NoOp):
        return workload
    timeout, then = scheduling_timeout(resolved, members, now), resolved.policy.workload.on_timeout
    resized = _resize(resolved, members, workload, timeout if then == "Basic" else None)
    if timeout is None or then != "Suspend":
        return resized
    suspended = _suspend(resolved.owner, timeout, now)
    if isinstance(suspended, NoOp):
        return resized
    if isinstance(resized, NoOp):
        return suspended
    # Muster may lack the right to suspend it: then its other gangs go on.
    return replace(suspended, actions=(*suspended.actions, *resized.actions), reply=resized.reply)


def _resize(
    resolved: ResolvedOwner, members: LiveMembers, workload: Workload, given_up: SchedulingTimeout | None
) -> Decision:
    names = given_up.groups if given_up else frozenset[str]()
    targets = wanted_counts(resolved, members, names)
    actions = (
        *_patched_templates(resolved, workload, targets),
        *_replaced_composites(resolved, members, workload, targets),
        *_patched_groups(members, targets, given_up),
    )
    if not actions:
        return NoOp(Reason.UP_TO_DATE, f"minCount of every group of {resolved.root} is up to date")
    sizes = ", ".join(f"{name} {count}" for name, count in targets.items())
    if only_flags(resolved):
        return NoOp(Reason.SCALING_FLAGGED, f"{resolved.policy.where}: onScale is Flag; wanted: {sizes}")
    if not resolved.api.resizable:
        version = resolved.api.version
        return NoOp(Reason.GANG_SIZE_FIXED, f"minCount is immutable in {version}; wanted: {sizes}")
    reply = Reply("resized", resolved.root, {"minCounts": targets})
    return Plan(Reason.GANG_RESIZED, f"minCount: {sizes}", actions, reply)


def _suspend(owner: OwnerObject, timeout: SchedulingTimeout, now: datetime) -> Decision:
    """Suspend an owner whose policy asks for it; an Event says if Muster may not.

    First its condition has to say why, which it does for as long as the owner is suspended. The right is in
    eventing/components/suspend-after-timeout.
    """
    if owner.spec.suspend:
        return NoOp(Reason.UP_TO_DATE, f"{owner.ref} is suspended")
    if stored_condition(owner, SCHEDULED).get("reason") != Reason.SCHEDULING_TIMED_OUT:
        return NoOp(Reason.SCHEDULING_TIMED_OUT, f"{owner.ref} is suspended once its condition says why")
    message = f"{timeout}; onTimeout is Suspend"
    timed_out = manifests.create_event(owner.ref, COMPONENT, Reason.SCHEDULING_TIMED_OUT, message, now)
    refused = manifests.event_of_refusal(owner.ref, COMPONENT, now)
    body = {"metadata": {"resourceVersion": owner.metadata.resource_version}, "spec": {"suspend": True}}
    suspend = Action(Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, if_refused=(refused,))
    return Plan(Reason.SCHEDULING_TIMED_OUT, f"{owner.ref} is suspended: {timeout}", (timed_out, suspend))


def _patched_templates(
    resolved: ResolvedOwner, workload: Workload, targets: dict[str, int]
) -> Iterator[Action]:
    """Yield one patch of all templates whose count changed.

    A JSON patch, because the lists of a Workload have no merge keys: another patch replaces them as a whole,
    and removing a template is forbidden (scheduling/v1beta1/types.go, Kubernetes v1.37.1). Replacing the
    resourceVersion by the one just read makes it a conflict where the indexes may have moved.
    """
    counts: Counter[str] = Counter()
    for one in resolved.owned:
        counts[one.group.name] = max(counts[one.group.name], targets.get(one.name, 0))
    changed = tuple(_changed_counts(workload.spec, counts, "/spec"))
    if changed:
        version = workload.metadata.resource_version
        guard = {"op": "replace", "path": "/metadata/resourceVersion", "value": version}
        yield Action(Verb.PATCH, workload.ref, patch=PatchType.JSON, operations=(guard, *changed))


def _changed_counts(
    level: WorkloadSpec | CompositePodGroupTemplate, counts: Counter[str], path: str
) -> Iterator[dict[str, Any]]:
    """JSON patch operations for the counts of one level, and of those below it, that are wrong."""
    lists = (
        ("podGroupTemplates", "minCount", level.pod_group_templates),
        ("compositePodGroupTemplates", "minGroupCount", level.composite_pod_group_templates),
    )
    for name, count, templates in lists:
        for index, template in enumerate(templates):
            below, policy = f"{path}/{name}/{index}", template.scheduling_policy
            wanted = counts[template.name] or policy.needs
            if policy.gang and wanted != policy.needs:
                field = f"{below}/schedulingPolicy/gang/{count}"
                yield {"op": "replace", "path": field, "value": wanted}
            if isinstance(template, CompositePodGroupTemplate):
                yield from _changed_counts(template, counts, below)


def _replaced_composites(
    resolved: ResolvedOwner, members: LiveMembers, workload: Workload, targets: dict[str, int]
) -> Iterator[Action]:
    """Replace CompositePodGroups of another minGroupCount, and create those that a child names but are gone.

    The template is patched before, so that a create_pod_groups in between makes a missing one right.
    """
    parents = {group.spec.parent for group in members.existing.values()}
    templates = {template.name: template for template, _ in workload.hierarchy()}
    for one in resolved.composites:
        template = templates.get(one.group.name)
        if not one.group.gang or not isinstance(template, CompositePodGroupTemplate):
            continue
        old, target = members.composite_named.get(one.name), targets[one.name]
        if old is not None and is_of_wrong_size(old, target):
            yield Action(Verb.DELETE, old.ref)
        elif old is not None or one.name not in parents:
            continue
        yield manifests.create_group(
            resolved.root,
            workload,
            one.name,
            template,
            policy=SchedulingPolicy(gang=Gang(min_group_count=target)),
            priority_class=old.spec.priority_class_name if old else one.group.priority_class_name,
            parent=one.parent,
        )


def _patched_groups(
    members: LiveMembers, targets: dict[str, int], given_up: SchedulingTimeout | None
) -> Iterator[Action]:
    for group in members.groups:
        target = targets.get(group.metadata.name, 0)
        timed_out = given_up is not None and group.metadata.name in given_up.groups
        if not (is_of_wrong_size(group, target) or timed_out):
            continue
        metadata: dict[str, Any] = {"resourceVersion": group.metadata.resource_version}
        if timed_out:
            metadata["annotations"] = manifests.why_no_gang(Reason.SCHEDULING_TIMED_OUT, str(given_up))
        body = {"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": target}}}}
        yield Action(Verb.PATCH, group.ref, body, patch=PatchType.STRATEGIC)

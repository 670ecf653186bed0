"""gather_pods: the PodGroup of pods that say how many of them start together, whatever made them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from muster.objects.meta import read_time
from muster.objects.pods import Pod
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GATE, is_gathered
from muster.policy.groups import manifests
from muster.policy.groups.gathered import (
    CONTROLLER,
    SIZE,
    GatheredPods,
    never_together,
    resolved_gang,
    whole_size,
    why_waiting,
)
from muster.policy.groups.manifests import FALLBACK, create_event
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, PatchType, Plan, Reply, Verb
from muster.policy.owners.kind import NEVER
from muster.policy.reasons import Reason
from muster.policy.sources.source import resolve_policy

COMPONENT = "muster-gather-pods"
EMPTY_SINCE = "muster.dev/empty-since"
"""Annotation of a gathered group without pods: when a sweep first saw that."""

_EMPTY_FOR = timedelta(seconds=5)
"""Two sweeps that are nearer to each other may have read the same list."""


def plan_gathering(inputs: GatheredPods, now: datetime) -> Decision:
    """Create the PodGroup of a gang, let its minCount follow its pods, or remove it when they are gone."""
    group, pod = inputs.group, inputs.first
    if not inputs.api.served:
        return NoOp(Reason.API_NOT_SERVED, f"{inputs.subject}: patch_pods removes the gates of its pods")
    if group is not None and not is_gathered(group.metadata.labels):
        return NoOp(
            Reason.NOT_MUSTERS, f"{group.ref} stays as its creator made it", reply=_reply(inputs, 0, 0)
        )
    if group is not None and group.being_deleted:
        return NoOp(Reason.BEING_DELETED, f"{group.ref}: being deleted", requeue=pod is not None)
    if pod is None:
        return NoOp(Reason.DELETED, f"{inputs.subject}") if group is None else _remove_when_empty(group, now)
    return _create(inputs, pod, now) if group is None else _change(inputs, group, now)


def _remove_when_empty(group: PodGroup, now: datetime) -> Decision:
    """Delete a group that no pod names, if a sweep saw that before: pods may be about to come."""
    since = read_time(group.metadata.annotations.get(EMPTY_SINCE, ""))
    if since is None:
        note = _patch(group, {EMPTY_SINCE: now.isoformat()})
        return Plan(Reason.ORPHANS_REMOVED, f"{group.ref} has no pods; the next sweep deletes it", (note,))
    if now - since < _EMPTY_FOR:
        return NoOp(Reason.UP_TO_DATE, f"{group.ref} has no pods since {since}")
    delete = Action(Verb.DELETE, group.ref)
    return Plan(Reason.ORPHANS_REMOVED, f"{group.ref} has no pods since {since}", (delete,))


def _create(inputs: GatheredPods, pod: Pod, now: datetime) -> Decision:
    resolved, subject, about = resolved_gang(inputs, pod), inputs.subject, inputs.made_by
    failure = resolved.failure or never_together(inputs, pod)
    owner = None if inputs.owner is None else inputs.owner.ref_in(subject.namespace)
    noted = {CONTROLLER: f"{about.api_version} {about.kind} {about.name} {about.uid}"} if about.uid else {}

    def fallback(failure: GroupingFailure) -> Action:
        never = pod.spec.preemption_policy == NEVER
        spec = manifests.spec_of_fallback(pod.spec.priority_class_name, never=never)
        why = {**noted, **manifests.why_no_gang(failure.reason, failure.message)}
        return manifests.create_gathered_group(subject, spec, why, owner)

    if failure is not None:
        holds = resolved.policy.holds
        message = f"the pods {'keep their gate' if holds else 'are scheduled one by one'}: {failure.message}"
        event = create_event(about, COMPONENT, failure.reason, message, now)
        actions = (event,) if holds else (fallback(failure), event)
        return Plan(failure.reason, f"{subject}: {message}", actions, None if holds else _reply(inputs, 0, 0))
    count = inputs.min_count
    size = count if inputs.beside else inputs.size
    spec = manifests.spec_of_gang(resolved.tree[0], count)
    creation = manifests.create_gathered_group(subject, spec, {**noted, SIZE: str(size)}, owner)
    refused = manifests.event_of_refusal(about, COMPONENT, now)
    instead = fallback(GroupingFailure(Reason.REFUSED_BY_API, "{refusal}"))
    creation = replace(creation, if_refused=(refused,) if resolved.policy.holds else (refused, instead))
    is_gang = resolved.tree[0].gang
    reply = _reply(inputs, count if is_gang else 0, size if is_gang else 0)
    return Plan(Reason.POD_GROUPS_CREATED, f"{subject}: gang of {count}", (creation,), reply)


def _change(inputs: GatheredPods, group: PodGroup, now: datetime) -> Decision:
    """Patch what differs: minCount, the size of the whole gang, or that it was seen without pods."""
    annotations: dict[str, str | None] = {}
    if EMPTY_SINCE in group.metadata.annotations:
        annotations[EMPTY_SINCE] = None
    count = before = group.spec.scheduling_policy.min_count
    size, timeout = whole_size(group), ""
    if before and inputs.whole and FALLBACK not in group.metadata.annotations:
        count = inputs.min_count
        size = count if inputs.beside else inputs.size
        if timeout := _timed_out(inputs, group, now):
            count = size = 1
            annotations |= manifests.why_no_gang(Reason.SCHEDULING_TIMED_OUT, timeout)
        if size != whole_size(group):
            annotations[SIZE] = str(size)
    reply = _reply(inputs, count, size)
    if count != before and not inputs.api.resizable:
        why = f"minCount is immutable in {inputs.api.version}; wanted: {count}"
        return NoOp(Reason.GANG_SIZE_FIXED, f"{group.ref}: {why}", reply=_reply(inputs, before, before))
    if count == before and not annotations:
        waits = why_waiting(group.ref, inputs.pods, count, size)
        return replace(waits or NoOp(Reason.UP_TO_DATE, f"{group.ref}: minCount {count}"), reply=reply)
    message = f"{group.ref}: minCount {before} -> {count}, {size} in all"
    actions = [_patch(group, annotations, count)]
    if timeout:
        actions.append(create_event(inputs.made_by, COMPONENT, Reason.SCHEDULING_TIMED_OUT, timeout, now))
    return Plan(Reason.GANG_RESIZED, message, tuple(actions), reply)


def _timed_out(inputs: GatheredPods, group: PodGroup, now: datetime) -> str:
    """Return how long a gang has waited with too few bound pods, if its policy says `onTimeout: Basic`."""
    policy, live = resolve_policy(inputs.sources).workload, inputs.staying
    limit = policy.scheduling_timeout_seconds if policy.on_timeout == "Basic" else None
    others_gate = any(set(pod.gates) - {GATE} for pod in live)
    if limit is None or others_gate or sum(pod.bound for pod in live) >= whole_size(group):
        return ""
    created = [pod.metadata.created_at for pod in live if pod.metadata.created_at and not pod.bound]
    late = bool(created) and now - max(created) >= timedelta(seconds=limit)
    return f"{len(live)} of {whole_size(group)} pods exist, and were not placed in {limit} s" if late else ""


def _patch(group: PodGroup, annotations: dict[str, str | None], min_count: int | None = None) -> Action:
    """Patch a group as it was read: another write in between is a conflict."""
    version = group.metadata.resource_version
    body: dict[str, Any] = {"metadata": {"resourceVersion": version, "annotations": annotations}}
    if min_count not in (None, group.spec.scheduling_policy.min_count):
        body["spec"] = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    return Action(Verb.PATCH, group.ref, body, patch=PatchType.MERGE)


def _reply(inputs: GatheredPods, min_count: int, size: int) -> Reply | None:
    """Return the reply after which patch_pods removes the gates of a group; None while they stay."""
    gated = any(GATE in pod.gates for pod in inputs.staying)
    waits = why_waiting(inputs.subject, inputs.pods, min_count, size)
    return Reply("gathered", inputs.subject) if gated and waits is None else None

"""Explain an owner: the policy that applies, its groups, what each step would do, and what prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muster.cluster.interface import Cluster
from muster.cluster.observe import policy_sources as sources
from muster.cluster.observe.members import failed_create, pods_of, read_members
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import ObjectRef, find_condition
from muster.objects.pods import Pod
from muster.objects.resources import NAMESPACES
from muster.operator.explain.files import DryRunCluster
from muster.operator.explain.quota import quota_warnings
from muster.policy.group_labels import GATE, GROUP, NAMESPACE_SWITCH
from muster.policy.model import Decision, GroupingFailure, NoOp, Plan
from muster.policy.owners import kind_of
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.runtime_labels import labels_of, labels_of_template, leaves
from muster.policy.sources.schema import GroupPolicy, WorkloadPolicy
from muster.policy.sources.source import (
    DEFAULT,
    EffectivePolicy,
    PolicySource,
    PolicySourceKind,
    resolve_policy,
)
from muster.policy.status.conditions import Condition, condition_type
from muster.policy.status.owner_status import owner_status
from muster.policy.tree.groups import Group
from muster.runtime import steps

STEPS = ("create_workload", "create_pod_groups", "patch_pods", "resize_gang", "emit_conditions")
"""The steps that act on an owner, in the order of the pipeline."""


@dataclass(frozen=True)
class StepPreview:
    """The decision a step would make about the owner now, and the writes in it."""

    function: str
    reason: str
    message: str
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Now:
    """One fact about the present.

    Attributes:
        about: the condition `PodGroupsReady` or `PodGroupsScheduled`, or `pods`.
        true: whether it is as wanted.
        reason: of the condition, or of the scheduler's answer about a pod; "" if there is none.
        since: when the condition got this reason, RFC 3339; "" if unknown.
        message: with names and numbers.
    """

    about: str
    true: bool
    reason: str
    since: str
    message: str


@dataclass(frozen=True)
class Explanation:
    """The explanation of one owner.

    Attributes:
        owner: the TrainJob, JobSet or Job.
        policy_sources: where a policy for it is written, highest precedence first; only the first applies.
        policy: the source that applies, as text.
        locked: the fields that the administrator locked and where, as text; "" if there are none.
        tree: its groups; empty if it is not grouped.
        pod_sets: its pod sets and names; None if it is not grouped.
        failure: why its groups cannot be made; None if they can.
        skipped: why it is not grouped; None if it is.
        steps: what each step would do.
        held: whether its pods keep their gate while its groups cannot be made.
        now: what its groups and pods wait for; empty if it has none yet.
        labels: labels that the policy asks for and a pod template lacks, as (path, label, value).
        warnings: ResourceQuotas that will keep a gang from having all its pods.
        notes: what its groups do not guarantee, or why it has none.
    """

    owner: ObjectRef
    policy_sources: tuple[PolicySource, ...]
    policy: str
    locked: str
    tree: tuple[Group, ...]
    pod_sets: OwnerPodSets | None
    failure: GroupingFailure | None
    skipped: NoOp | None
    steps: tuple[StepPreview, ...]
    held: bool = False
    now: tuple[Now, ...] = ()
    labels: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def explain(cluster: Cluster, owner: ObjectRef, now: datetime) -> Explanation:
    """Return the explanation of an owner; nothing is written.

    Args:
        cluster: live, or made of a file.
        owner: the owner; its UID may be empty.
        now: the time in conditions and Events.
    """
    live, resolved = read_owner(cluster, owner, classes=True)
    explanation = Explanation(
        owner=live.owner.ref if live.owner else owner,
        policy_sources=tuple(_policies(cluster, live)),
        policy=_policy(live, resolved),
        locked=_locked(live),
        tree=(),
        pod_sets=None,
        failure=None,
        skipped=None,
        steps=tuple(_preview_steps(cluster, live, now)),
    )
    if isinstance(resolved, NoOp):
        namespace = cluster.get(NAMESPACES, explanation.owner.namespace) or {"metadata": {}}
        notes = notes_on_skipped(live, resolved, namespace["metadata"].get("labels") or {})
        return replace(explanation, skipped=resolved, now=tuple(pods_now(cluster, live)), notes=tuple(notes))
    return replace(
        explanation,
        tree=resolved.tree,
        pod_sets=resolved.pod_sets,
        failure=resolved.failure,
        held=resolved.failure is not None and resolved.policy.holds,
        now=tuple(groups_now(cluster, live, resolved, now)),
        labels=tuple(_missing_labels(resolved)) if resolved.own is None else (),
        warnings=tuple(quota_warnings(cluster, resolved)),
        notes=tuple(notes_on_groups(resolved)),
    )


def _policies(cluster: Cluster, live: LiveOwner) -> Iterator[PolicySource]:
    """Yield where a policy for the owner is written, without the locked fields."""
    if live.owner is not None:
        written = sources.of_owner(cluster, live.owner, live.runner)
        yield from (source for source in written if source.kind != PolicySourceKind.LOCKED)


def _locked(live: LiveOwner) -> str:
    """Return the locked fields that apply to the owner; those that cannot be read by their place alone."""
    resolved = resolve_policy(live.sources, live.owner)
    policy = resolved if isinstance(resolved, EffectivePolicy) else resolved.policy
    if policy.locks is not None:
        return f"{policy.locks.as_text()} ({policy.locks.where})"
    return next((source.where for source in live.sources if source.kind == PolicySourceKind.LOCKED), "")


def _policy(live: LiveOwner, resolved: ResolvedOwner | NoOp) -> str:
    if not isinstance(resolved, NoOp) and resolved.own is not None:
        return f"the owner's own Workload {resolved.own.metadata.name}"
    if isinstance(resolved, NoOp) or resolved.policy == DEFAULT:
        policy = resolve_policy(live.sources, live.owner)
        return policy.where if isinstance(policy, EffectivePolicy) else policy.policy.where
    stored = " (as it was when the groups were created)" if resolved.policy.kept else ""
    return resolved.policy.where + stored


def _missing_labels(resolved: ResolvedOwner) -> Iterator[tuple[str, str, str]]:
    """Yield path, label and value of each label that the policy asks for and a pod template lacks."""
    policy = resolved.policy.workload
    for _, group in leaves(policy.groups if policy else ()):
        for pod_set in _pod_sets_of(group, resolved.pod_sets.pod_sets):
            labels = labels_of_template(pod_set.labels)
            for label, value in labels_of(group).items():
                if labels.get(label) != value:
                    yield f"{pod_set.path}.metadata.labels", label, value


def _pod_sets_of(group: GroupPolicy, pod_sets: Sequence[PodSet]) -> list[PodSet]:
    """Return the pod sets that a group names, else those labelled for it, else the only pod set."""
    if group.replicated_jobs:
        return [pod_set for pod_set in pod_sets if pod_set.replicated_job in group.replicated_jobs]
    labelled = [pod_set for pod_set in pod_sets if pod_set.labels and group.name in pod_set.labels.groups]
    return labelled or (list(pod_sets) if len(pod_sets) == 1 else [])


def _preview_steps(cluster: Cluster, live: LiveOwner, now: datetime) -> Iterator[StepPreview]:
    """Yield what each step would do; in a DryRunCluster a step sees what the steps before it create."""
    owner = live.owner
    kind = None if owner is None else kind_of(owner)
    if owner is None or kind is None:
        return
    runtime = kind.runtime(owner)
    if runtime is not None:
        mark_runtime = steps.step_named("mark_runtime")
        yield _preview("mark_runtime", mark_runtime.plan(mark_runtime.observe(cluster, runtime), now))
    for name in STEPS:
        step = steps.step_named(name)
        if name == "patch_pods":
            yield from _preview_patch_pods(cluster, owner.ref, now)
            continue
        decision = step.plan(step.observe(cluster, owner.ref), now)
        yield _preview(name, decision)
        if isinstance(cluster, DryRunCluster) and isinstance(decision, Plan):
            cluster = cluster.after(decision)


def _preview_patch_pods(cluster: Cluster, owner: ObjectRef, now: datetime) -> Iterator[StepPreview]:
    """Yield what patch_pods would do about each PodGroup of an owner."""
    step = steps.step_named("patch_pods")
    groups = read_members(cluster, *read_owner(cluster, owner)).groups
    if not groups:
        yield StepPreview("patch_pods", "AwaitingPodGroup", "no PodGroup exists yet", ())
    for group in groups:
        yield _preview("patch_pods", step.plan(step.observe(cluster, group.ref), now))


def _preview(name: str, decision: Decision) -> StepPreview:
    actions = decision.actions if isinstance(decision, Plan) else ()
    writes = tuple(f"{action.verb} {action.target}" for action in actions)
    return StepPreview(name, str(decision.reason), decision.message, writes)


def groups_now(cluster: Cluster, live: LiveOwner, resolved: ResolvedOwner, now: datetime) -> Iterator[Now]:
    """Yield the conditions of an owner as emit_conditions would write them, if it has pods or groups.

    They are computed from its groups and pods, so they are right also where that function does not run.
    """
    members = read_members(cluster, live, resolved)
    if not (members.pods or members.groups):
        return
    missing = len(members.pods) < sum(job.spec.parallelism for job in members.jobs)
    events = failed_create(cluster, members.jobs) if missing else ""
    for condition in owner_status(resolved, members, events, now).conditions:
        since = _since(live, condition)
        yield Now(condition.type, condition.true, str(condition.reason), since, condition.message)


def pods_now(cluster: Cluster, live: LiveOwner) -> Iterator[Now]:
    """Yield how many pods of an owner that is not grouped have a node, and why the others have none."""
    pods = [pod for pod in pods_of(cluster, live) if not (pod.finished or pod.being_deleted)]
    if pods:
        yield Now("pods", all(pod.bound for pod in pods), *_why_unbound(pods))


def _since(live: LiveOwner, condition: Condition) -> str:
    """Return when the owner's condition got its present reason, if it was written."""
    if live.owner is None:
        return ""
    stored = find_condition(live.owner.status.conditions, condition_type(live.owner, condition.type)) or {}
    return str(stored.get("lastTransitionTime") or "") if stored.get("reason") == condition.reason else ""


def _why_unbound(pods: Sequence[Pod]) -> tuple[str, str, str]:
    """Return the reason, the time and the message of the first pod without a node."""
    unbound = [pod for pod in pods if not pod.bound]
    count = f"{len(pods) - len(unbound)} of {len(pods)} have a node"
    for pod in unbound:
        reason, since, message = pod_waits_for(pod)
        if reason:
            return reason, since, f"{count}; {pod.metadata.name}: {message}"
    return "", "", count


def pod_waits_for(pod: Pod) -> tuple[str, str, str]:
    """Return reason, time and message of what a pod without a node waits for; empty texts if unknown."""
    if pod.gates:
        others = sorted(pod.gates - {GATE})
        message = f"scheduling gates {', '.join(sorted(pod.gates))}"
        if others:
            message += f"; the controller of {others[0]} removes it"
        return "SchedulingGated", pod.metadata.creation_timestamp, message
    condition = find_condition(pod.status.conditions, "PodScheduled") or {}
    if condition.get("status") != "False":
        return "", "", ""
    return (
        str(condition.get("reason") or ""),
        str(condition.get("lastTransitionTime") or ""),
        " ".join(str(condition.get("message") or "").split()),
    )


def notes_on_groups(resolved: ResolvedOwner) -> Iterator[str]:
    """Yield a line for each way in which the groups of an owner may be less than a user expects."""
    if resolved.failure is not None:
        if resolved.failure.reason == Reason.PRIORITIES_DIFFER:
            yield "the scheduler places no pods of different priority in one group, not even one by one"
        return
    stages = [f"{Reason.HOLDS_WHILE_WAITING}: {stage}" for stage in resolved.stages]
    gangs = [group.name for group in resolved.tree if group.gang]
    by_default = resolved.own is None and not (resolved.policy.workload or WorkloadPolicy()).groups
    yield from stages
    if len(gangs) > 1 and by_default and not stages:
        yield (
            f"{' and '.join(gangs)} are {len(gangs)} separate gangs: one may run without the other; for a "
            f"single gang give their pod templates the same label {GROUP}, or a policy with a group of groups"
        )
    policy = resolved.policy.workload
    if policy is not None and policy.scheduling_timeout_seconds is not None:
        then = {
            "Report": "a condition says so",
            "Basic": "its pods run one by one",
            "Suspend": "it is suspended",
        }
        seconds = policy.scheduling_timeout_seconds
        yield f"a gang may wait {seconds} s for room; then {then[policy.on_timeout]}"
    grows = [group.name for group in resolved.tree if group.gang and group.template_min_count == 1]
    if grows and isinstance(resolved.owner, Job):
        yield f"{grows[0]} is a gang of 1: pods that are added later are scheduled as they come, not together"


def notes_on_skipped(live: LiveOwner, skipped: NoOp, namespace_labels: Mapping[str, str]) -> Iterator[str]:
    """Yield why mark-jobs leaves a plain Job without a group label (eventing/admission/mark-jobs.yaml)."""
    job = live.owner
    if skipped.reason != Reason.NOT_MARKED or not isinstance(job, Job):
        return
    if namespace_labels.get(NAMESPACE_SWITCH) != "enabled":
        yield f"mark-jobs does not act in namespaces without the label {NAMESPACE_SWITCH}: enabled"
        return
    spec = job.spec
    if not spec.indexed or spec.parallelism <= 1 or spec.completions != spec.parallelism:
        yield (
            "mark-jobs labels Indexed Jobs with parallelism above 1 and as many completions; this one has "
            f"completionMode {spec.completion_mode}, parallelism {spec.parallelism}, completions "
            f"{'unset' if spec.completions is None else spec.completions}"
        )
        yield (
            "a Job gets its label when it is created: scaled up later, it still has no group; "
            f"to get one, create it with the label {GROUP} in its pod template"
        )

"""Explain an owner: the policy that applies, its groups, what each step would do, and what prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muster.cluster.interface import Cluster
from muster.cluster.observe import policy_sources as sources
from muster.cluster.observe.members import read_members
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import ObjectRef
from muster.objects.resources import NAMESPACES
from muster.operator.explain.files import DryRunCluster
from muster.operator.explain.notes import notes_on_groups, notes_on_skipped
from muster.operator.explain.present import Now, groups_now, pods_now
from muster.operator.explain.quota import quota_warnings
from muster.policy.model import Decision, GroupingFailure, NoOp, Plan
from muster.policy.owners import kind_of
from muster.policy.owners.kind import OwnerPodSets, PodSet
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.runtime_labels import labels_of, labels_of_template, leaves
from muster.policy.sources.schema import GroupPolicy
from muster.policy.sources.source import (
    DEFAULT,
    EffectivePolicy,
    PolicySource,
    PolicySourceKind,
    resolve_policy,
)
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

"""Explain an owner: the policy that applies, its groups, what each step would do, and what prevents it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from muster import steps
from muster.cluster import homes
from muster.cluster.observe import for_conditions
from muster.cluster.port import Cluster
from muster.objects.jobs import TrainJob
from muster.objects.meta import ObjectRef
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.operator.explain.assumptions import DryRunCluster
from muster.operator.explain.quota import quota_warnings
from muster.policy.groups import GivenUp, Group
from muster.policy.homes import DEFAULT, Ruling, rule
from muster.policy.kinds import Gang, PodSet
from muster.policy.membership import labels_of, labels_of_mark, leaves
from muster.policy.model import Decision, Home, Nothing, Observed, Plan
from muster.policy.ownership import Considered, consider
from muster.policy.schema import GroupPolicy

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
        tree: its groups; empty if it is not grouped.
        gang: its pod sets and names; None if it is not grouped.
        failure: why its groups cannot be made; None if they can.
        skipped: why it is not grouped; None if it is.
        steps: what each step would do.
        labels: labels that the policy asks for and a pod template lacks, as (path, label, value).
        warnings: ResourceQuotas that will keep a gang from having all its pods.
    """

    owner: ObjectRef
    policy_sources: tuple[Home, ...]
    policy: str
    tree: tuple[Group, ...]
    gang: Gang | None
    failure: GivenUp | None
    skipped: Nothing | None
    steps: tuple[StepPreview, ...]
    labels: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def explain(cluster: Cluster, owner: ObjectRef, now: datetime) -> Explanation:
    """Return the explanation of an owner; nothing is written.

    Args:
        cluster: live, or made of a file.
        owner: the owner; its UID may be empty.
        now: the time in conditions and Events.
    """
    observed = for_conditions(cluster, owner)
    resolved = consider(observed)
    explanation = Explanation(
        owner=observed.owner.ref if observed.owner else owner,
        policy_sources=(
            () if observed.owner is None else tuple(homes.every(cluster, observed.owner, observed.jobset))
        ),
        policy=_policy(observed, resolved),
        tree=(),
        gang=None,
        failure=None,
        skipped=None,
        steps=tuple(_preview_steps(cluster, observed, now)),
    )
    if isinstance(resolved, Nothing):
        return replace(explanation, skipped=resolved)
    return replace(
        explanation,
        tree=resolved.tree,
        gang=resolved.gang,
        failure=resolved.flaw,
        labels=tuple(_missing_labels(resolved)) if resolved.own is None else (),
        warnings=tuple(quota_warnings(cluster, resolved)),
    )


def _policy(observed: Observed, resolved: Considered | Nothing) -> str:
    if not isinstance(resolved, Nothing) and resolved.own is not None:
        return f"the owner's own Workload {resolved.own.metadata.name}"
    if isinstance(resolved, Nothing) or resolved.ruling == DEFAULT:
        policy = rule(observed.homes, observed.owner)
        return policy.where if isinstance(policy, Ruling) else policy.ruling.where
    stored = " (as it was when the groups were made)" if resolved.ruling.kept else ""
    return resolved.ruling.where + stored


def _missing_labels(resolved: Considered) -> Iterator[tuple[str, str, str]]:
    """Yield path, label and value of each label that the policy asks for and a pod template lacks."""
    policy = resolved.ruling.workload
    for _, group in leaves(policy.groups if policy else ()):
        for pod_set in _pod_sets_of(group, resolved.gang.pod_sets):
            labels = labels_of_mark(pod_set.mark)
            for label, value in labels_of(group).items():
                if labels.get(label) != value:
                    yield f"{pod_set.path}.metadata.labels", label, value


def _pod_sets_of(group: GroupPolicy, pod_sets: Sequence[PodSet]) -> list[PodSet]:
    """Return the pod sets that a group names, else those labelled for it, else the only pod set."""
    if group.replicated_jobs:
        return [pod_set for pod_set in pod_sets if pod_set.replicated_job in group.replicated_jobs]
    labelled = [pod_set for pod_set in pod_sets if pod_set.mark and group.name in pod_set.mark.groups]
    return labelled or (list(pod_sets) if len(pod_sets) == 1 else [])


def _preview_steps(cluster: Cluster, observed: Observed, now: datetime) -> Iterator[StepPreview]:
    """Yield what each step would do; in a DryRunCluster a step sees what the steps before it create."""
    owner = observed.owner
    if owner is None:
        return
    if isinstance(owner, TrainJob):
        yield _preview_mark_runtime(cluster, owner, now)
    for name in STEPS:
        step = steps.step_named(name)
        if name == "patch_pods":
            yield from _preview_patch_pods(cluster, owner.ref, now)
            continue
        decision = step.plan(step.observe(cluster, owner.ref), now)
        yield _preview(name, decision)
        if isinstance(cluster, DryRunCluster) and isinstance(decision, Plan):
            cluster = cluster.after(decision)


def _preview_mark_runtime(cluster: Cluster, trainjob: TrainJob, now: datetime) -> StepPreview:
    """Return what mark_runtime would do about the runtime of a TrainJob."""
    ref = trainjob.spec.runtime_ref
    namespaced = ref.kind == TRAINING_RUNTIMES.kind
    resource = TRAINING_RUNTIMES if namespaced else CLUSTER_TRAINING_RUNTIMES
    namespace = trainjob.metadata.namespace if namespaced else ""
    step = steps.step_named("mark_runtime")
    runtime = ObjectRef(resource.api_version, resource.kind, namespace, ref.name)
    return _preview(step.name, step.plan(step.observe(cluster, runtime), now))


def _preview_patch_pods(cluster: Cluster, owner: ObjectRef, now: datetime) -> Iterator[StepPreview]:
    """Yield what patch_pods would do about each PodGroup of an owner."""
    step = steps.step_named("patch_pods")
    groups = for_conditions(cluster, owner).groups
    if not groups:
        yield StepPreview("patch_pods", "AwaitingPodGroup", "there is no PodGroup yet", ())
    for group in groups:
        yield _preview("patch_pods", step.plan(step.observe(cluster, group.ref), now))


def _preview(name: str, decision: Decision) -> StepPreview:
    actions = decision.actions if isinstance(decision, Plan) else ()
    writes = tuple(f"{action.verb} {action.target}" for action in actions)
    return StepPreview(name, str(decision.reason), decision.message, writes)

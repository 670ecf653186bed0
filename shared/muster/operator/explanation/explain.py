"""One owner: which policy rules, what groups come of it, what each step would do, and what is in the way."""

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
from muster.operator.explanation.assume import Imagined
from muster.operator.explanation.quota import warnings
from muster.policy.groups import GivenUp, Group
from muster.policy.homes import DEFAULT, Ruling, rule
from muster.policy.kinds import Gang, PodSet
from muster.policy.membership import labels_of, labels_of_mark, leaves
from muster.policy.model import Decision, Home, Nothing, Observed, Plan, Verb
from muster.policy.ownership import Considered, consider
from muster.policy.schema import GroupPolicy

STEPS = ("create_workload", "create_pod_groups", "patch_pods", "resize_gang", "emit_conditions")


@dataclass(frozen=True)
class Step:
    """What a step would do about the owner now."""

    function: str
    reason: str
    message: str
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """All that is known of one owner.

    Attributes:
        owner: the TrainJob, JobSet or Job.
        homes: where policies stand for it, highest first; the first one rules.
        ruling: what rules, in words.
        tree: its groups; empty where it is left alone.
        gang: its pod sets and names; None where it is left alone.
        flaw: why the groups cannot be had; None where they can.
        left_alone: why it is not grouped at all; None where it is.
        steps: what each step would do.
        labels: labels to add so that pod templates say what the policy says: path, label, value.
        warnings: what will not stop anything here, but later.
    """

    owner: ObjectRef
    homes: tuple[Home, ...]
    ruling: str
    tree: tuple[Group, ...]
    gang: Gang | None
    flaw: GivenUp | None
    left_alone: Nothing | None
    steps: tuple[Step, ...]
    labels: tuple[tuple[str, str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def explain(cluster: Cluster, owner: ObjectRef, now: datetime) -> Explanation:
    """The explanation of an owner; nothing is written.

    Args:
        cluster: live, or made of a file.
        owner: the owner, without a UID where nobody knows it.
        now: for the plans.
    """
    observed = for_conditions(cluster, owner)
    considered = consider(observed)
    found = () if observed.owner is None else tuple(homes.every(cluster, observed.owner, observed.jobset))
    explained = Explanation(
        observed.owner.ref if observed.owner else owner,
        found,
        _where(observed, considered),
        (),
        None,
        None,
        None,
        tuple(_steps(cluster, observed, now)),
    )
    if isinstance(considered, Nothing):
        return replace(explained, left_alone=considered)
    return replace(
        explained,
        tree=considered.tree,
        gang=considered.gang,
        flaw=considered.flaw,
        labels=tuple(_labels_to_add(considered)) if considered.own is None else (),
        warnings=tuple(warnings(cluster, considered)),
    )


def _where(observed: Observed, considered: Considered | Nothing) -> str:
    if not isinstance(considered, Nothing) and considered.own is not None:
        return f"the owner's own Workload {considered.own.metadata.name}"
    if isinstance(considered, Nothing) or considered.ruling == DEFAULT:
        ruling = rule(observed.homes, observed.owner)
        return ruling.where if isinstance(ruling, Ruling) else ruling.ruling.where
    kept = " (as it was when the groups were made)" if considered.ruling.kept else ""
    return considered.ruling.where + kept


def _labels_to_add(considered: Considered) -> Iterator[tuple[str, str, str]]:
    """Labels that the policy asks for and pod templates lack."""
    policy = considered.ruling.workload
    for _, group in leaves(policy.groups if policy else ()):
        for pod_set in _meant(group, considered.gang.pod_sets):
            there = labels_of_mark(pod_set.mark)
            for label, asked in labels_of(group).items():
                if there.get(label) != asked:
                    yield f"{pod_set.path}.metadata.labels", label, asked


def _meant(group: GroupPolicy, pod_sets: Sequence[PodSet]) -> list[PodSet]:
    """The pod sets that a group is about: those it names, else those marked for it, else the only one."""
    if group.replicated_jobs:
        return [one for one in pod_sets if one.replicated_job in group.replicated_jobs]
    marked = [one for one in pod_sets if one.mark and group.name in one.mark.groups]
    return marked or (list(pod_sets) if len(pod_sets) == 1 else [])


def _steps(cluster: Cluster, observed: Observed, now: datetime) -> Iterator[Step]:
    """Each step in its order; in a cluster of files each sees what those before it would have made."""
    owner = observed.owner
    if owner is None:
        return
    if isinstance(owner, TrainJob):
        yield _marking(cluster, owner, now)
    for name in STEPS:
        step = steps.step_named(name)
        if name == "patch_pods":
            yield from _patching(cluster, owner.ref, now)
            continue
        decision = step.plan(step.observe(cluster, owner.ref), now)
        yield _told(name, decision)
        if isinstance(cluster, Imagined) and isinstance(decision, Plan):
            cluster = cluster.after(decision)


def _marking(cluster: Cluster, trainjob: TrainJob, now: datetime) -> Step:
    """mark_runtime, about the runtime of a TrainJob."""
    ref = trainjob.spec.runtime_ref
    namespaced = ref.kind == TRAINING_RUNTIMES.kind
    resource = TRAINING_RUNTIMES if namespaced else CLUSTER_TRAINING_RUNTIMES
    namespace = trainjob.metadata.namespace if namespaced else ""
    step = steps.step_named("mark_runtime")
    runtime = ObjectRef(resource.api_version, resource.kind, namespace, ref.name)
    return _told(step.name, step.plan(step.observe(cluster, runtime), now))


def _patching(cluster: Cluster, owner: ObjectRef, now: datetime) -> Iterator[Step]:
    """patch_pods, once for every group that there is."""
    step = steps.step_named("patch_pods")
    seen = for_conditions(cluster, owner)
    if not seen.groups:
        yield Step("patch_pods", "AwaitingPodGroup", "there is no PodGroup yet", ())
    for group in seen.groups:
        yield _told("patch_pods", step.plan(step.observe(cluster, group.ref), now))


def _told(name: str, decision: Decision) -> Step:
    actions = decision.actions if isinstance(decision, Plan) else ()
    writes = tuple(_written(action.verb, action.target) for action in actions)
    return Step(name, str(decision.reason), decision.message, writes)


def _written(verb: Verb, target: ObjectRef) -> str:
    return f"{verb} {target}"

"""Everything a test knows of a cluster in one bag, and the plans run on it.

A step reads what it needs into inputs of its own. Tests of plans give all that exists at once; the functions
here hand each plan its part of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from muster.objects.meta import ObjectRef
from muster.objects.pods import Namespace, Pod
from muster.objects.resources import SchedulingApi
from muster.objects.scheduling import CompositePodGroup, PodGroup, PriorityClass, Workload
from muster.policy import resolve as resolving
from muster.policy.model import Decision, NoOp
from muster.policy.owners import known_kind_of, workload_name
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerObject, OwnerPodSets
from muster.policy.plans import (
    create_pod_groups,
    create_workload,
    emit_conditions,
    mark_runtime,
    patch_pods,
    resize_gang,
    restart_gang,
)
from muster.policy.resolve import LiveOwner, OwnerGroups, ResolvedOwner
from muster.policy.sources.source import PolicySource
from muster.policy.tree.members import LiveMembers


@dataclass(frozen=True)
class Observed:
    """What exists, as far as a test says; the names are those of the inputs of the plans."""

    subject: ObjectRef
    owner: OwnerObject | None = None
    jobset: JobSet | None = None
    jobs: tuple[Job, ...] = ()
    namespace: Namespace | None = None
    workload: Workload | None = None
    other_workloads: tuple[Workload, ...] = ()
    sources: tuple[PolicySource, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    composites: tuple[CompositePodGroup, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    pods: tuple[Pod, ...] = ()
    scheduling: SchedulingApi = field(default_factory=SchedulingApi)
    failed_create: str = ""
    runtime: Mapping[str, Any] | None = None
    event_names: frozenset[str] = frozenset()

    @property
    def live(self) -> LiveOwner:
        """What is read to resolve the owner."""
        runner = self.owner if isinstance(self.owner, Job) else self.jobset
        return LiveOwner(
            self.subject,
            self.owner,
            runner,
            self.namespace,
            self.scheduling,
            self.workload,
            self.other_workloads,
            sources=self.sources,
        )

    @property
    def members(self) -> LiveMembers:
        """What exists of the owner."""
        return LiveMembers(self.jobs, self.pods, self.groups, self.composites)


def resolve(given: Observed) -> ResolvedOwner | NoOp:
    """The groups of the owner by all PriorityClasses that exist, or why it is left alone."""
    identified = resolving.identify(given.live)
    if isinstance(identified, NoOp):
        return identified
    return resolving.resolve(identified, given.priority_classes)


def pod_sets_of(
    owner: OwnerObject,
    jobset: JobSet | None,
    classes: Collection[PriorityClass] = (),
) -> OwnerPodSets:
    """The pod sets of an owner."""
    runner = owner if jobset is None else jobset
    templates = known_kind_of(runner).pod_sets(runner, {})
    sets = OwnerPodSets(runner.ref, workload_name(owner), templates)
    return sets.with_classes(classes)


def plan_workload(given: Observed, now: datetime) -> Decision:
    """create_workload."""
    identified = resolving.identify(given.live)
    reads_classes = not isinstance(identified, NoOp) and identified.needs_priority_classes(to_create=True)
    resolved = resolve(given if reads_classes else replace(given, priority_classes=()))
    inputs = create_workload.WorkloadInputs(given.live, resolved)
    if create_workload.needs_members(inputs):
        inputs = replace(inputs, members=given.members)
    return create_workload.plan_workload(inputs, now)


def plan_pod_groups(given: Observed, now: datetime) -> Decision:
    """create_pod_groups."""
    return create_pod_groups.plan_pod_groups(OwnerGroups(resolve(given), given.members), now)


def plan_resize(given: Observed, now: datetime) -> Decision:
    """resize_gang."""
    return resize_gang.plan_resize(resolving.OwnerGroups(resolve(given), given.members), now)


def plan_restart(given: Observed, now: datetime) -> Decision:
    """restart_gang."""
    return restart_gang.plan_restart(resolving.OwnerGroups(resolve(given), given.members), now)


def plan_conditions(given: Observed, now: datetime) -> Decision:
    """emit_conditions."""
    inputs = emit_conditions.ConditionInputs(resolve(given), given.members, given.failed_create)
    return emit_conditions.plan_conditions(inputs, now)


def plan_pods(given: Observed, now: datetime) -> Decision:
    """patch_pods."""
    tree = resolving.OwnerGroups(resolve(given), given.members) if given.owner is not None else None
    inputs = patch_pods.PodInputs(given.subject, given.scheduling, given.pods, given.groups, tree)
    return patch_pods.plan_pods(inputs, now)


def plan_runtime(given: Observed, now: datetime) -> Decision:
    """mark_runtime."""
    inputs = mark_runtime.RuntimeInputs(given.subject, given.runtime, given.event_names)
    return mark_runtime.plan_runtime(inputs, now)

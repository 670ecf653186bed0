"""JobSets (jobset.x-k8s.io/v1alpha2, JobSet v0.12.0)."""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import ClassVar

from pydantic import AliasPath, Field

from muster.objects.meta import View
from muster.objects.resources import JOBS, JOBSETS
from muster.policy import group_labels
from muster.policy.owners.job import JobTemplate, grouped_by_others, is_unmarked, pod_set_of
from muster.policy.owners.kind import OwnerKind, OwnerObject, OwnerSpec, OwnerStatus, PodSet

CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"
INITIALIZERS = ("dataset-initializer", "model-initializer")
"""Ancestor steps of the Trainer whose pods only prepare."""

_SHAPES = {group_labels.GROUP_PER, group_labels.GROUP_SIZE, group_labels.LEADER_GROUP}
"""Labels by which a template has several groups, none of which it shares by default."""

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_EXCLUSIVE_BY_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"


class DependsOn(View):
    """A replicatedJob that must be `Ready` or `Complete` before another one exists."""

    name: str
    status: str = "Complete"


class ReplicatedJob(View):
    """One entry of a JobSet's `replicatedJobs`."""

    name: str
    replicas: int = 1
    template: JobTemplate = Field(default_factory=JobTemplate)
    depends_on: tuple[DependsOn, ...] = ()

    @property
    def step(self) -> str:
        """Its ancestor step of the Trainer, or ""."""
        return self.template.metadata.labels.get(group_labels.ANCESTOR, "")


class JobSetSpec(OwnerSpec):
    """The spec of a JobSet."""

    replicated_jobs: tuple[ReplicatedJob, ...] = ()
    startup_order: str = Field("", validation_alias=AliasPath("startupPolicy", "startupPolicyOrder"))
    managed_by: str = CONTROLLER

    @property
    def in_order(self) -> bool:
        """Whether its replicatedJobs start one after another."""
        return self.startup_order == "InOrder"


class ReplicatedJobStatus(View):
    """The numbers of Jobs of one replicatedJob that have ended."""

    succeeded: int = 0
    failed: int = 0


class JobSetStatus(OwnerStatus):
    """Restarts, ended Jobs and conditions of a JobSet."""

    restarts: int = 0
    replicated_jobs_status: tuple[ReplicatedJobStatus, ...] = ()


class JobSet(OwnerObject):
    """A JobSet."""

    terminal_conditions: ClassVar[tuple[str, ...]] = ("Completed", "Failed")

    spec: JobSetSpec = Field(default_factory=JobSetSpec)
    status: JobSetStatus = Field(default_factory=JobSetStatus)

    @property
    def has_original_size(self) -> bool:
        """Whether its spec was never changed, it was never restarted, and no Job of it has ended."""
        status = self.status
        ended = any(jobs.succeeded + jobs.failed > 0 for jobs in status.replicated_jobs_status)
        return self.metadata.generation == 1 and status.restarts == 0 and not ended

    @property
    def unmarked(self) -> bool:
        """Whether a pod template of it has no group label, though nobody else groups its pods."""
        return any(is_unmarked(job.template) for job in self.spec.replicated_jobs)


def default_groups(spec: JobSetSpec, labels: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return the groups of the replicatedJobs that will have no group label, as mark-jobsets writes them.

    Those that start together are one group: of two owners that do not both fit, each could else hold a part
    of its pods for ever. `labels` are those that each pod template will have beside.
    """
    jobs = spec.replicated_jobs
    trainers = [job for job in jobs if job.step == "trainer"]
    # The `node` of an MPI runtime has no ancestor step; its launcher has.
    trainers = (trainers and [job for job in jobs if job.name == "node"]) or trainers
    together: defaultdict[object, list[ReplicatedJob]] = defaultdict(list)
    for job in jobs:
        has = labels[job.name]
        if group_labels.GROUP not in has and grouped_by_others(job.template) is None:
            pod = job.template.spec.template.spec
            alone = spec.in_order or job.step in INITIALIZERS or not _SHAPES.isdisjoint(has)
            start = (pod.scheduler_name, pod.priority_class_name, job.depends_on)
            together[job.name if alone else start].append(job)
    named_main = any(job.name == "main" for several in together.values() for job in several)
    main = [] if named_main else next((several for several in together.values() if len(several) > 1), [])
    groups: dict[str, str] = {}
    for several in together.values():
        trains = any(job in trainers for job in several)
        name = "trainer" if trains else "main" if several is main else several[0].name
        groups |= {job.name: name for job in several}
    return groups


def pod_sets(jobset: JobSet, groups: Mapping[str, str]) -> tuple[PodSet, ...]:
    """Return one pod set for each replicatedJob, with those it waits for."""
    entries = jobset.spec.replicated_jobs
    index_of = {entry.name: index for index, entry in enumerate(entries)}
    waits: list[int] = []
    must_complete: list[int] = []
    sets = []
    for index, entry in enumerate(entries):
        waited, completed = 0, 0
        for dependency in entry.depends_on:
            other = index_of.get(dependency.name)
            if other is not None:
                bit, is_earlier = 1 << other, other < index
                waited |= bit | (waits[other] if is_earlier else 0)
                completed |= bit if dependency.status == "Complete" else 0
                completed |= must_complete[other] if is_earlier else 0
        waits.append((1 << index) - 1 if jobset.spec.in_order else waited)
        must_complete.append(completed)
        annotations = ChainMap(jobset.metadata.annotations, entry.template.metadata.annotations)
        pods = pod_set_of(
            entry.template,
            f"spec.replicatedJobs[{index}].template.spec.template",
            entry.name,
            max(0, entry.replicas),
            groups.get(entry.name),
        )
        sets.append(
            replace(
                pods,
                initializer=entry.step in INITIALIZERS,
                # By node selector pods do not wait (JobSet v0.12.0, pod_webhook.go).
                exclusive=_EXCLUSIVE in annotations and _EXCLUSIVE_BY_NODE_SELECTOR not in annotations,
                index=index,
                waits_for=waits[index],
                must_complete=completed,
            )
        )
    return tuple(sets)


JOBSET = OwnerKind(
    resource=JOBSETS,
    view=JobSet,
    controller=CONTROLLER,
    pod_sets=pod_sets,
    pod_label=group_labels.JOBSET_NAME,
    makes=JOBS,
)

"""What the kinds of owners have in common: pod templates, how many pods come of each, and marks on them.

One adapter per kind tells its pod sets; everything after that is the same for all. Counts come from the
JobSet or Job that really runs, never from a TrainJob's numNodes (design: MPI launchers, numNodes 0 and a
runtime's own parallelism make that wrong).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from muster.objects.jobs import Job, JobSet, JobSpec, JobTemplate, PodTemplate, ReplicatedJob
from muster.objects.meta import ObjectRef
from muster.objects.scheduling import PriorityClass
from muster.policy import marks
from muster.policy.marks import Mark
from muster.policy.model import Owner
from muster.policy.names import pod_group_name
from muster.policy.priorities import Priority, priority_of
from muster.policy.reasons import Reason

_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_EXCLUSIVE_BY_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
INITIALIZERS = ("dataset-initializer", "model-initializer")


@dataclass(frozen=True)
class PodSet:
    """One pod template of an owner.

    Attributes:
        path: where the template stands in the JobSet or Job, for messages.
        replicated_job: the name of the replicatedJob; "" in a plain Job.
        jobs: how many Jobs are made of it.
        spec: the spec each of those Jobs has.
        mark: the mark its pods will carry; None where they carry none.
        unmarked: why they carry none.
        priority: what its pods' priorityClassName comes to.
        initializer: whether it only prepares what others need.
        waits_for: replicatedJobs that must be ready or complete before its Jobs exist.
        ends_first: those of them that must be complete, whose pods have ended by then.
        exclusive: whether JobSet's webhook refuses all pods of a Job but index 0 until that one is bound.
    """

    path: str
    replicated_job: str
    jobs: int
    spec: JobSpec
    mark: Mark | None
    unmarked: Reason | None
    priority: Priority
    initializer: bool = False
    waits_for: frozenset[str] = frozenset()
    ends_first: frozenset[str] = frozenset()
    exclusive: bool = False

    @property
    def template(self) -> PodTemplate:
        """The pod template."""
        return self.spec.template


@dataclass(frozen=True)
class Gang:
    """An owner as the planner sees it.

    Attributes:
        root: what a person created; owns what Muster makes.
        named_by: the JobSet or Job whose name and UID stand in the names of the groups.
        pod_sets: its pod templates.
    """

    root: ObjectRef
    named_by: ObjectRef
    pod_sets: tuple[PodSet, ...]

    def pod_group_name(self, group: str, suffix: str) -> str:
        """The name of one PodGroup of the owner."""
        return pod_group_name(self.named_by.name, group, self.named_by.uid, suffix)


def gang_of(
    owner: Owner,
    jobset: JobSet | None,
    namespace_labels: Mapping[str, str],
    classes: Collection[PriorityClass] = (),
) -> Gang:
    """The planner's view of an owner.

    Args:
        owner: the root owner.
        jobset: the JobSet of a TrainJob, the owner itself if it is a JobSet, else None.
        namespace_labels: tell whether mark-jobs acts in the namespace.
        classes: the cluster's PriorityClasses; empty where nobody has read them.
    """
    if isinstance(owner, Job):
        return Gang(owner.ref, owner.ref, (_pod_set_of_job(owner, classes),))
    if jobset is None:
        raise ValueError(f"{owner.ref} has no JobSet yet")
    return Gang(owner.ref, jobset.ref, _pod_sets_of_jobset(jobset, namespace_labels, classes))


def pods_of(named_by: ObjectRef) -> str:
    """The label selector of the pods, and the Jobs, of a JobSet; or of the pods of a Job."""
    key = marks.JOBSET_NAME if named_by.kind == "JobSet" else marks.JOB_NAME
    return f"{key}={named_by.name}"


def _pod_set_of_job(job: Job, classes: Collection[PriorityClass]) -> PodSet:
    """A live Job's template tells all: where mark-jobs acts, it marked the Job at its creation."""
    mark, unmarked = _resolve(job, None)
    priority = priority_of(job.spec.template.spec.priority_class_name, classes)
    return PodSet("spec.template", "", 1, job.spec, mark, unmarked, priority)


def _pod_sets_of_jobset(
    jobset: JobSet, namespace_labels: Mapping[str, str], classes: Collection[PriorityClass]
) -> tuple[PodSet, ...]:
    enabled = namespace_labels.get(marks.NAMESPACE_SWITCH) == "enabled"
    in_order = jobset.spec.startup_policy.startup_policy_order == "InOrder"
    waits: dict[str, frozenset[str]] = {}
    ends: dict[str, frozenset[str]] = {}
    sets = []
    for index, entry in enumerate(jobset.spec.replicated_jobs):
        named = frozenset(dependency.name for dependency in entry.depends_on)
        complete = frozenset(one.name for one in entry.depends_on if one.status == "Complete")
        waits[entry.name] = frozenset(waits) if in_order else _with_theirs(named, named, waits)
        ends[entry.name] = _with_theirs(complete, named, ends)
        annotations = jobset.metadata.annotations | entry.template.metadata.annotations
        pod_set = _pod_set_of_replicated_job(index, entry, classes, enabled=enabled)
        sets.append(
            replace(
                pod_set,
                waits_for=waits[entry.name],
                ends_first=ends[entry.name],
                exclusive=_is_exclusive(annotations),
            )
        )
    return tuple(sets)


def _is_exclusive(annotations: Mapping[str, str]) -> bool:
    """Exclusive placement by webhook; by node selector pods do not wait (JobSet v0.12.0, pod_webhook.go)."""
    return _EXCLUSIVE in annotations and _EXCLUSIVE_BY_NODE_SELECTOR not in annotations


def _with_theirs(
    own: frozenset[str], named: frozenset[str], earlier: Mapping[str, frozenset[str]]
) -> frozenset[str]:
    """What holds of a replicatedJob and of those it depends on, all earlier ones (JobSet v0.12.0)."""
    return own.union(*(earlier.get(name, frozenset()) for name in named))


def _pod_set_of_replicated_job(
    index: int, entry: ReplicatedJob, classes: Collection[PriorityClass], *, enabled: bool
) -> PodSet:
    job = entry.template
    step = job.metadata.labels.get(marks.ANCESTOR, "")
    rule = marks.group_of_replicated_job(entry.name, step) if enabled else None
    mark, unmarked = _resolve(job, rule)
    return PodSet(
        f"spec.replicatedJobs[{index}].template.spec.template",
        entry.name,
        entry.replicas,
        job.spec,
        mark,
        unmarked,
        priority_of(job.spec.template.spec.priority_class_name, classes),
        initializer=step in INITIALIZERS,
    )


def _resolve(job: Job | JobTemplate, rule: str | None) -> tuple[Mark | None, Reason | None]:
    """The mark that pods of a Job will carry, by hand or by mark-jobs, or why they carry none."""
    labels = job.spec.template.metadata.labels
    others = grouped_by_others(job)
    if others is None and marks.GROUP not in labels and rule is not None:
        # mark-jobs adds its label to the others on the template, so these still count.
        return marks.read_mark({**labels, marks.GROUP: rule}), None
    mark = None if others else marks.read_mark(labels)
    opted_out = labels.get(marks.GROUP) == marks.OPTED_OUT
    return mark, None if mark else others or (Reason.OPTED_OUT if opted_out else Reason.NOT_MARKED)


def grouped_by_others(job: Job | JobTemplate) -> Reason | None:
    """Why the pods of a Job are left to somebody else, whatever their mark."""
    meta, spec = job.spec.template.metadata, job.spec.template.spec
    if spec.scheduling_group is not None:
        return Reason.BRING_YOUR_OWN_GROUP
    if marks.of_another_scheduler(meta.labels, meta.annotations, spec.scheduler_name):
        return Reason.OTHER_SCHEDULER
    if spec.eviction_responders:
        return Reason.EVICTION_RESPONDERS
    if marks.of_system_priority(spec.priority_class_name):
        return Reason.PRIORITY_TOO_HIGH
    upstream = job.spec.scheduling is not None or marks.UPSTREAM_TEMPLATE in job.metadata.annotations
    return Reason.UPSTREAM_GROUPS if upstream else None

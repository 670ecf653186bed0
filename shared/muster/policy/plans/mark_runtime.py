"""mark_runtime: the group labels of a runtime's policy, written on its pod templates.

Labels that reach a job later than its first pod are too late, so they are put into the runtime. The runtime
is read, changed and replaced as a whole: server-side apply would recreate deleted runtimes and keep
replicatedJobs under their old names (seen on Trainer 2.3.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pydantic import Field

from muster.objects.field_paths import FieldPath, Path, owned_by
from muster.objects.meta import (
    KubernetesObject,
    ManagedFieldsEntry,
    ObjectMeta,
    ObjectRef,
    View,
)
from muster.policy import group_labels
from muster.policy.groups import manifests
from muster.policy.limits import REPLICATED_JOBS
from muster.policy.model import Action, Decision, NoOp, Plan, Reply, Verb, as_refused
from muster.policy.owners.job import JobTemplate, grouped_by_others
from muster.policy.owners.jobset import JobSetSpec
from muster.policy.reasons import Reason
from muster.policy.sources.runtime_labels import LABELS, labels_for
from muster.policy.sources.schema import InvalidPolicyError
from muster.policy.sources.source import (
    EffectivePolicy,
    InvalidPolicy,
    PolicySourceKind,
    invalid_policy,
    resolve_policy,
    sources_of_runtime,
)

COMPONENT = "muster-mark-runtime"
"""Also the field manager: its entry in managedFields lists the fields that may be removed again."""

_JOBS = "spec.template.spec.replicatedJobs"

KAI = "kai-scheduler"
KAI_QUEUE = "kai.scheduler/queue"
KAI_MINIMUM = "kai.scheduler/batch-min-member"
"""On a JobSet: the number of its replicatedJobs that KAI waits for; KAI ignores dependsOn
(jobset_grouper.go, KAI-Scheduler v0.17.0)."""

_BY_POLICY = ("coscheduling", "volcano")
"""Schedulers with gangs of their own that a podGroupPolicy of the Trainer selects."""

_BY_SCHEDULER_NAME = ("volcano", "yunikorn")
"""Schedulers with gangs of their own that a template selects by schedulerName."""

_OTHER_GROUPS = {
    Reason.UPSTREAM_GROUPS: f"spec.scheduling or the annotation {group_labels.UPSTREAM_TEMPLATE}",
    Reason.BRING_YOUR_OWN_GROUP: "a schedulingGroup",
}
"""Reasons to leave a Job template alone, with the field that shows them, for messages."""

SMALL_JOBS = 8
"""The most replicatedJobs of a runtime that its event decides about; the Trainer ships up to three."""

_TEMPLATE: Path = ("spec", "template")


class FieldOwner(ManagedFieldsEntry):
    """One entry of `metadata.managedFields`, with its fields."""

    fields_v1: dict[str, Any] = Field(default_factory=dict, alias="fieldsV1")


class RuntimeMeta(ObjectMeta):
    """The metadata of a runtime, with the owners of its fields."""

    managed_fields: tuple[FieldOwner, ...] = ()


class JobSetTemplate(View):
    """`spec.template` of a runtime."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSetSpec = Field(default_factory=JobSetSpec)


class RuntimeSpec(View):
    """The spec of a runtime."""

    template: JobSetTemplate = Field(default_factory=JobSetTemplate)


class TrainingRuntime(KubernetesObject):
    """A TrainingRuntime or ClusterTrainingRuntime: the types of all fields read from its JSON."""

    metadata: RuntimeMeta
    spec: RuntimeSpec = Field(default_factory=RuntimeSpec)


@dataclass(frozen=True)
class RuntimeInputs:
    """The inputs of mark_runtime.

    Attributes:
        subject: the runtime that the event was about.
        runtime: the whole runtime as parsed JSON, because it is replaced as a whole; None if it is gone.
        event_names: the names of the Events about it.
    """

    subject: ObjectRef
    runtime: Mapping[str, Any] | None = None
    event_names: frozenset[str] = frozenset()


@dataclass
class _DesiredFields:
    """The fields that a runtime should have.

    Attributes:
        values: each field that Muster may write, with its value; None removes it.
        kept: messages about templates labelled by hand or grouped upstream, which stay as they are.
        left: replicatedJobs whose pods have groups already, with the reason.
        foreign: fields with another value, written by another manager; they stay.
    """

    values: dict[FieldPath, str | None] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    left: dict[str, Reason] = field(default_factory=dict)
    foreign: set[FieldPath] = field(default_factory=set)


def plan_runtime(inputs: RuntimeInputs, now: datetime) -> Decision:
    """Write the labels of a runtime's policy on it; remove labels of Muster that no policy sets."""
    runtime = inputs.runtime
    if runtime is None:
        return NoOp(Reason.OBJECT_GONE, f"{inputs.subject} does not exist, or has another UID")
    view = TrainingRuntime.read(runtime)
    if view.being_deleted:
        return NoOp(Reason.DELETED, f"{view.ref} is being deleted")
    policy = _policy_of(runtime)
    if isinstance(policy, InvalidPolicy):
        return _refused(inputs, view.ref, policy.failure.reason, policy.failure.message, now)
    try:
        desired = _desired_fields(runtime, policy)
    except InvalidPolicyError as error:
        failure = invalid_policy(policy.where if policy else "", str(error)).failure
        return _refused(inputs, view.ref, failure.reason, failure.message, now)
    changed = _changed(runtime, desired)
    if changed is not None:
        return _replaced(view.ref, runtime, changed, policy, desired, now)
    no_op = _no_op(view.ref, policy, desired)
    if _has_unused_policy(runtime, no_op):
        return _refused(inputs, view.ref, no_op.reason, no_op.message, now)
    return no_op


def as_executed(plan: Plan) -> Plan:
    """Return the plan with the reason RefusedByApi if it was to replace a runtime and did not."""
    updated = any(action.verb is Verb.UPDATE for action in plan.actions)
    if plan.reply is None or plan.reason != Reason.RUNTIME_MARKED or updated:
        return plan
    return as_refused(plan, "refused")


def up_to_date(runtime: Mapping[str, Any]) -> NoOp | None:
    """Why a runtime needs no write, by its own fields; None if it may need one.

    Raises:
        pydantic.ValidationError: a field has a type that no API server would have stored.
    """
    view = TrainingRuntime.read(runtime)
    policy = _policy_of(runtime)
    if isinstance(policy, InvalidPolicy) or view.being_deleted:
        return None
    try:
        desired = _desired_fields(runtime, policy)
    except InvalidPolicyError:
        return None
    no_op = _no_op(view.ref, policy, desired)
    unfinished = _changed(runtime, desired) is not None or _has_unused_policy(runtime, no_op)
    return None if unfinished else no_op


def never_marked(runtime: Mapping[str, Any]) -> NoOp | None:
    """Why a small runtime needs no write if nothing asks for labels, and never did; None of any other.

    Most runtimes are such, and this takes less than a millisecond of an event, which may be forged. The time
    of `up_to_date` grows with the policy, the owners of fields and the square of the replicatedJobs.

    Raises:
        pydantic.ValidationError: a field has a type that no API server would have stored.
    """
    view = TrainingRuntime.read(runtime)
    jobs = view.spec.template.spec.replicated_jobs
    if len(jobs) > SMALL_JOBS or view.being_deleted or sources_of_runtime(runtime):
        return None
    was_marked = any(entry.manager == COMPONENT for entry in view.metadata.managed_fields)
    if was_marked or any(map(_names_gang_scheduler, (job.template for job in jobs))):
        return None
    return _no_op(view.ref, None, _DesiredFields())


def _policy_of(runtime: Mapping[str, Any]) -> EffectivePolicy | InvalidPolicy | None:
    """Return the policy of a runtime; None if it has none."""
    sources = sources_of_runtime(runtime)
    return resolve_policy(sources) if sources else None


def _has_unused_policy(runtime: Mapping[str, Any], no_op: NoOp) -> bool:
    """Whether a policy of the runtime asks for groups of pods that have groups already."""
    policies = [source for source in sources_of_runtime(runtime) if source.kind != PolicySourceKind.UPSTREAM]
    return bool(policies) and no_op.reason in _OTHER_GROUPS


def _no_op(ref: ObjectRef, policy: EffectivePolicy | None, desired: _DesiredFields) -> NoOp:
    if policy is None:
        return NoOp(Reason.NOT_MARKED, f"{ref} has no policy")
    if policy.other == "upstream":
        return NoOp(
            Reason.UPSTREAM_GROUPS, f"{policy.where}: Trainer, JobSet or the Job controller groups these pods"
        )
    if policy.other:
        return NoOp(Reason.OTHER_SCHEDULER, f"{policy.where}: {policy.other} groups these pods")
    if desired.left and not any(desired.values.values()):
        return NoOp(
            next(iter(desired.left.values())), "; ".join([f"{ref} has no group labels", *desired.kept])
        )
    return NoOp(Reason.UP_TO_DATE, "; ".join([f"{ref} is up to date", *desired.kept]))


def _replaced(
    ref: ObjectRef,
    runtime: Mapping[str, Any],
    changed: dict[str, Any],
    policy: EffectivePolicy | None,
    desired: _DesiredFields,
    now: datetime,
) -> Plan:
    done = [
        f"{path} {'= ' + value if (value := path.value_in(changed)) is not None else 'removed'}"
        for path in _fields(runtime)
        if path.value_in(runtime) != path.value_in(changed)
    ]
    source = policy.where if policy else "no policy"
    message = f"{source}: {'; '.join([*done, *desired.kept])}"
    refused = manifests.create_event(
        ref, component=COMPONENT, warning=True, reason=Reason.REFUSED_BY_API, message="{refusal}", now=now
    )
    update = Action(Verb.UPDATE, ref, changed, if_refused=(refused,))
    event = manifests.create_event(
        ref, component=COMPONENT, warning=False, reason=Reason.RUNTIME_MARKED, message=message, now=now
    )
    return Plan(Reason.RUNTIME_MARKED, message, (update, event), Reply("marked", ref, {"changes": done}))


def _refused(inputs: RuntimeInputs, ref: ObjectRef, reason: str, message: str, now: datetime) -> Decision:
    """Return one Event on the runtime about a policy that cannot be used; its labels stay as they are."""
    event = manifests.create_event(
        ref, component=COMPONENT, warning=True, reason=reason, message=message, now=now
    )
    if event.target.name in inputs.event_names:
        return NoOp(reason, message)
    return Plan(reason, message, (event,), Reply("refused", ref, {"reason": reason, "message": message}))


def _desired_fields(runtime: Mapping[str, Any], policy: EffectivePolicy | None) -> _DesiredFields:
    """Return the value that each field should have.

    Raises:
        InvalidPolicyError: the policy names replicatedJobs that the runtime lacks, or it has too many.
    """
    count = sum(1 for _ in _entries(runtime))
    if count > REPLICATED_JOBS:
        raise InvalidPolicyError(_JOBS, f"has {count} entries; mark_runtime labels {REPLICATED_JOBS}")
    desired = _DesiredFields(dict.fromkeys(_fields(runtime)))
    ours = owned_by(runtime, COMPONENT, desired.values)
    entries = {name: entry for _, name, entry in _entries(runtime)}
    steps = {name: _step(entry) for name, entry in entries.items()}
    labels: dict[str, dict[str, str]] = {}
    if policy is not None and policy.workload is not None:
        labels = labels_for(policy.workload, steps)
    for index, name, entry in _entries(runtime):
        job = JobTemplate.model_validate(entry.get("template") or {}, by_alias=True, by_name=False)
        left = grouped_by_others(job)
        if left in _OTHER_GROUPS:
            desired.left[name] = left
            desired.kept.append(f"{name} is not labelled ({left}): its template has {_OTHER_GROUPS[left]}")
            _desired_labels(runtime, desired, ours, (index, name), {})
            continue
        others = (policy is not None and policy.other in _BY_POLICY) or _names_gang_scheduler(job)
        wanted = {group_labels.GROUP: group_labels.OPTED_OUT} if others else labels.get(name, {})
        _desired_labels(runtime, desired, ours, (index, name), wanted)
        if policy is not None and policy.other == "kaiScheduler":
            desired.values[_pod_field(index, name, "spec", "schedulerName")] = KAI
            desired.values[_pod_field(index, name, "metadata", "labels", KAI_QUEUE)] = policy.queue or None
    if policy is not None and policy.other == "kaiScheduler":
        desired.values[FieldPath((*_TEMPLATE, "metadata", "labels", KAI_QUEUE))] = policy.queue or None
        if any(entry.get("dependsOn") for entry in entries.values()):
            desired.values[FieldPath((*_TEMPLATE, "metadata", "annotations", KAI_MINIMUM))] = "1"
    desired.foreign = _foreign(runtime, desired, ours)
    desired.kept += [
        f"{path} is {path.value_in(runtime)}, set by another field manager; the policy asks for {value}"
        for path, value in desired.values.items()
        if value is not None and path in desired.foreign
    ]
    return desired


def _names_gang_scheduler(job: JobTemplate) -> bool:
    """Whether a template names a scheduler with gangs of its own."""
    return job.spec.template.spec.scheduler_name in _BY_SCHEDULER_NAME


def _desired_labels(
    runtime: Mapping[str, Any],
    desired: _DesiredFields,
    ours: Collection[FieldPath],
    entry: tuple[int, str],
    wanted: Mapping[str, str],
) -> None:
    """Add the group labels of one template, unless it was labelled by hand.

    Args:
        runtime: the live runtime.
        desired: what is added to.
        ours: the fields that Muster owns.
        entry: index and name of the replicatedJob.
        wanted: the labels that the policy asks for.
    """
    name = entry[1]
    paths = {label: _pod_field(*entry, "metadata", "labels", label) for label in LABELS}
    current_group = paths[group_labels.GROUP].value_in(runtime)
    if current_group is not None and paths[group_labels.GROUP] not in ours:
        for path in paths.values():
            del desired.values[path]
        differs = [label for label in wanted if paths[label].value_in(runtime) != wanted[label]]
        if differs:
            asked = ", ".join(f"{label}: {wanted[label]}" for label in differs)
            desired.kept.append(
                f"{name} keeps its own group label ({current_group}); the policy asks for {asked}"
            )
        return
    for label, path in paths.items():
        desired.values[path] = wanted.get(label)


def _changed(runtime: Mapping[str, Any], desired: _DesiredFields) -> dict[str, Any] | None:
    """Return the runtime with the desired fields; None if nothing changes.

    Fields of other managers stay; a field that is no longer desired is removed only if Muster owns it.
    """
    changed = dict(runtime)
    for path, value in desired.values.items():
        if path not in desired.foreign and path.value_in(runtime) != value:
            path.write(changed, value)
    return None if changed == runtime else changed


def _foreign(
    runtime: Mapping[str, Any], desired: _DesiredFields, ours: Collection[FieldPath]
) -> set[FieldPath]:
    """Return the fields with another value than the desired one, written by another manager."""
    current = {path: path.value_in(runtime) for path in desired.values.keys() - set(ours)}
    return {path for path, value in current.items() if value not in {None, desired.values[path]}}


def _fields(runtime: Mapping[str, Any]) -> Iterator[FieldPath]:
    """Yield every field that mark_runtime may write."""
    yield FieldPath((*_TEMPLATE, "metadata", "labels", KAI_QUEUE))
    yield FieldPath((*_TEMPLATE, "metadata", "annotations", KAI_MINIMUM))
    for index, name, _ in _entries(runtime):
        for label in (*LABELS, KAI_QUEUE):
            yield _pod_field(index, name, "metadata", "labels", label)
        yield _pod_field(index, name, "spec", "schedulerName")


def _pod_field(index: int, name: str, *inside: str) -> FieldPath:
    job = (*_TEMPLATE, "spec", "replicatedJobs", (index, name))
    return FieldPath((*job, "template", "spec", "template", *inside))


def _entries(runtime: Mapping[str, Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    spec = ((runtime.get("spec") or {}).get("template") or {}).get("spec") or {}
    for index, entry in enumerate(spec.get("replicatedJobs") or []):
        yield index, entry["name"], entry


def _step(entry: Mapping[str, Any]) -> str:
    metadata = (entry.get("template") or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(group_labels.ANCESTOR, ""))

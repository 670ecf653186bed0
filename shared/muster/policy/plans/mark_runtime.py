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
from muster.objects.meta import KubernetesObject, ObjectMeta, ObjectRef, View
from muster.policy import group_labels
from muster.policy.groups.manifests import create_event
from muster.policy.limits import REPLICATED_JOBS
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply, Verb, as_refused
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

_TEMPLATE: Path = ("spec", "template")


class JobSetTemplate(View):
    """`spec.template` of a runtime."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
    spec: JobSetSpec = Field(default_factory=JobSetSpec)


class RuntimeSpec(View):
    """The spec of a runtime."""

    template: JobSetTemplate = Field(default_factory=JobSetTemplate)


class TrainingRuntime(KubernetesObject):
    """A TrainingRuntime or ClusterTrainingRuntime: the types of all fields read from its JSON."""

    spec: RuntimeSpec = Field(default_factory=RuntimeSpec)


@dataclass(frozen=True)
class RuntimeInputs:
    """The inputs of mark_runtime."""

    subject: ObjectRef
    runtime: Mapping[str, Any] | None = None
    event_names: frozenset[str] = frozenset()


@dataclass
class _Marks:
    """The fields that a runtime should have by its policy; a value of None removes the field."""

    policy: EffectivePolicy | None
    values: dict[FieldPath, str | None]
    notes: list[str] = field(default_factory=list)
    grouped_by_others: dict[str, Reason] = field(default_factory=dict)


def plan_runtime(inputs: RuntimeInputs, now: datetime) -> Decision:
    """Write the labels of a runtime's policy on it; remove labels of Muster that no policy sets."""
    runtime = inputs.runtime
    if runtime is None:
        return NoOp(Reason.OBJECT_GONE, f"{inputs.subject} does not exist, or has another UID")
    view = TrainingRuntime.read(runtime)
    if view.being_deleted:
        return NoOp(Reason.DELETED, f"{view.ref} is being deleted")
    marks = _marks(runtime)
    if isinstance(marks, GroupingFailure):
        return _reported(inputs, view.ref, marks.reason, marks.message, now)
    changed = _changed(runtime, marks)
    if changed != runtime:
        return _replaced(view.ref, runtime, changed, marks, now)
    no_op = _no_op(view.ref, marks)
    if _is_unused(runtime, marks, no_op):
        return _reported(inputs, view.ref, no_op.reason, no_op.message, now)
    return no_op


def as_executed(plan: Plan) -> Plan:
    """Return the plan with the reason RefusedByApi if it was to replace a runtime and did not."""
    updated = any(action.verb is Verb.UPDATE for action in plan.actions)
    if plan.reply is None or plan.reason != Reason.RUNTIME_MARKED or updated:
        return plan
    return as_refused(plan, "refused")


def needs_events(runtime: Mapping[str, Any]) -> bool:
    """Whether plan_runtime may report a policy that cannot be used, which it does once."""
    view = TrainingRuntime.read(runtime)
    marks = _marks(runtime)
    return isinstance(marks, GroupingFailure) or _is_unused(runtime, marks, _no_op(view.ref, marks))


def _is_unused(runtime: Mapping[str, Any], marks: _Marks, no_op: NoOp) -> bool:
    """Whether a policy of the runtime asks for groups of pods that have groups already."""
    kinds = {source.kind for source in sources_of_runtime(runtime)}
    return marks.policy is not None and kinds != {PolicySourceKind.UPSTREAM} and no_op.reason in _OTHER_GROUPS


def _no_op(ref: ObjectRef, marks: _Marks) -> NoOp:
    policy = marks.policy
    if policy is None:
        return NoOp(Reason.NOT_MARKED, f"{ref} has no policy")
    if policy.other == "upstream":
        message = f"{policy.where}: Trainer, JobSet or the Job controller groups these pods"
        return NoOp(Reason.UPSTREAM_GROUPS, message)
    if policy.other:
        return NoOp(Reason.OTHER_SCHEDULER, f"{policy.where}: {policy.other} groups these pods")
    if marks.grouped_by_others and not any(marks.values.values()):
        reason = next(iter(marks.grouped_by_others.values()))
        return NoOp(reason, "; ".join([f"{ref} has no group labels", *marks.notes]))
    return NoOp(Reason.UP_TO_DATE, "; ".join([f"{ref} is up to date", *marks.notes]))


def _replaced(
    ref: ObjectRef, runtime: Mapping[str, Any], changed: dict[str, Any], marks: _Marks, now: datetime
) -> Plan:
    done = [
        f"{path} {'removed' if (value := path.value_in(changed)) is None else '= ' + value}"
        for path in _fields(runtime)
        if path.value_in(runtime) != path.value_in(changed)
    ]
    source = marks.policy.where if marks.policy else "no policy"
    message = f"{source}: {'; '.join([*done, *marks.notes])}"
    refused = _event(ref, Reason.REFUSED_BY_API, "{refusal}", now, warning=True)
    update = Action(Verb.UPDATE, ref, changed, if_refused=(refused,))
    event = _event(ref, Reason.RUNTIME_MARKED, message, now, warning=False)
    return Plan(Reason.RUNTIME_MARKED, message, (update, event), Reply("marked", ref, {"changes": done}))


def _reported(inputs: RuntimeInputs, ref: ObjectRef, reason: str, message: str, now: datetime) -> Decision:
    event = _event(ref, reason, message, now, warning=True)
    if event.target.name in inputs.event_names:
        return NoOp(reason, message)
    return Plan(reason, message, (event,), Reply("refused", ref, {"reason": reason, "message": message}))


def _event(ref: ObjectRef, reason: str, message: str, now: datetime, *, warning: bool) -> Action:
    return create_event(ref, component=COMPONENT, warning=warning, reason=reason, message=message, now=now)


def _marks(runtime: Mapping[str, Any]) -> _Marks | GroupingFailure:
    sources = sources_of_runtime(runtime)
    policy = resolve_policy(sources) if sources else None
    if isinstance(policy, InvalidPolicy):
        return policy.failure
    marks = _Marks(policy, dict.fromkeys(_fields(runtime)))
    try:
        _set_values(runtime, policy, marks)
    except InvalidPolicyError as error:
        return invalid_policy(policy.where if policy else "", str(error)).failure
    return marks


def _set_values(runtime: Mapping[str, Any], policy: EffectivePolicy | None, marks: _Marks) -> None:
    """Set the value that each field should have."""
    entries = list(_entries(runtime))
    if len(entries) > REPLICATED_JOBS:
        message = f"has {len(entries)} entries; mark_runtime labels {REPLICATED_JOBS}"
        raise InvalidPolicyError("spec.template.spec.replicatedJobs", message)
    ours = owned_by(runtime, COMPONENT, marks.values)
    labels: dict[str, dict[str, str]] = {}
    if policy is not None and policy.workload is not None:
        labels = labels_for(policy.workload, {name: _step(entry) for _, name, entry in entries})
    other = policy.other if policy is not None else ""
    for index, name, entry in entries:
        job = JobTemplate.model_validate(entry.get("template") or {}, by_alias=True, by_name=False)
        reason, wanted = grouped_by_others(job), labels.get(name, {})
        if reason in _OTHER_GROUPS:
            marks.grouped_by_others[name] = reason
            marks.notes.append(f"{name} is not labelled ({reason}): its template has {_OTHER_GROUPS[reason]}")
            wanted = {}
        elif other in _BY_POLICY or job.spec.template.spec.scheduler_name in _BY_SCHEDULER_NAME:
            wanted = {group_labels.GROUP: group_labels.OPTED_OUT}
        _set_labels(runtime, marks, ours, (index, name), wanted)
    if policy is not None and other == "kaiScheduler":
        _set_fields_of_kai(marks, policy.queue or None, entries)
    _leave_foreign_fields(runtime, marks, ours)


def _set_labels(
    runtime: Mapping[str, Any],
    marks: _Marks,
    ours: Collection[FieldPath],
    entry: tuple[int, str],
    wanted: Mapping[str, str],
) -> None:
    """Set the group labels of one template, unless it was labelled by hand."""
    paths = {label: _pod_field(*entry, "metadata", "labels", label) for label in LABELS}
    current_group = paths[group_labels.GROUP].value_in(runtime)
    if current_group is None or paths[group_labels.GROUP] in ours:
        marks.values |= {path: wanted.get(label) for label, path in paths.items()}
        return
    for path in paths.values():
        del marks.values[path]
    differs = [label for label in wanted if paths[label].value_in(runtime) != wanted[label]]
    if differs:
        asked = ", ".join(f"{label}: {wanted[label]}" for label in differs)
        marks.notes.append(
            f"{entry[1]} keeps its own group label ({current_group}); the policy asks for {asked}"
        )


def _set_fields_of_kai(
    marks: _Marks, queue: str | None, entries: list[tuple[int, str, Mapping[str, Any]]]
) -> None:
    for index, name, _ in entries:
        if name not in marks.grouped_by_others:
            marks.values[_pod_field(index, name, "spec", "schedulerName")] = KAI
            marks.values[_pod_field(index, name, "metadata", "labels", KAI_QUEUE)] = queue
    marks.values[FieldPath((*_TEMPLATE, "metadata", "labels", KAI_QUEUE))] = queue
    if any(entry.get("dependsOn") for _, _, entry in entries):
        marks.values[FieldPath((*_TEMPLATE, "metadata", "annotations", KAI_MINIMUM))] = "1"


def _leave_foreign_fields(runtime: Mapping[str, Any], marks: _Marks, ours: Collection[FieldPath]) -> None:
    """Take off the fields that another manager has set to another value."""
    for path, value in tuple(marks.values.items()):
        current = path.value_in(runtime)
        if path not in ours and current not in {None, value}:
            del marks.values[path]
            if value is not None:
                asked = f"set by another field manager; the policy asks for {value}"
                marks.notes.append(f"{path} is {current}, {asked}")


def _changed(runtime: Mapping[str, Any], marks: _Marks) -> dict[str, Any]:
    changed = dict(runtime)
    for path, value in marks.values.items():
        if path.value_in(runtime) != value:
            path.write(changed, value)
    return changed


def _fields(runtime: Mapping[str, Any]) -> Iterator[FieldPath]:
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

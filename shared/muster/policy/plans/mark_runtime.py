"""mark_runtime: the group labels of a runtime's policy, written on its pod templates.

Labels that reach a job later than its first pod are too late, so they are put into the runtime. The runtime
is read, changed and replaced as a whole: server-side apply would recreate deleted runtimes and keep
replicatedJobs under their old names (seen on Trainer 2.3.0).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from pydantic import AliasPath, Field

from muster.objects.meta import KubernetesObject, ObjectRef
from muster.policy import group_labels
from muster.policy.groups.manifests import create_event, event_of_refusal
from muster.policy.limits import REPLICATED_JOBS
from muster.policy.model import Action, Decision, GroupingFailure, NoOp, Plan, Reply, Verb, as_refused
from muster.policy.owners.job import grouped_by_others
from muster.policy.owners.jobset import JobSetSpec
from muster.policy.reasons import Reason
from muster.policy.sources.runtime_labels import LABELS, labels_for
from muster.policy.sources.schema import InvalidPolicyError
from muster.policy.sources.source import (
    UPSTREAM_GROUPS,
    EffectivePolicy,
    PolicySourceKind,
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

_REPORTED = {Reason.INVALID_POLICY, *_OTHER_GROUPS}
"""Reasons of a policy that cannot be used: an Event says so, once."""

Part = str | tuple[int, str]
"""A key, or an entry of a list that is a map by `name`: its index and that name."""

_TEMPLATE: tuple[Part, ...] = ("spec", "template")


@dataclass(frozen=True)
class FieldPath:
    """One field that holds a string."""

    path: tuple[Part, ...]

    def __str__(self) -> str:
        """The list entry, if any, and the key: `node: muster.dev/group`."""
        entry = "".join(f"{part[1]}: " for part in self.path if isinstance(part, tuple))
        return f"{entry}{self.path[-1]}"

    def value_in(self, body: Mapping[str, Any]) -> str | None:
        """Return the value of the field; None if it is absent."""
        at: Any = body
        for part in self.path:
            at = at[part[0]] if isinstance(part, tuple) else (at or {}).get(part)
        return at if at is None else str(at)

    def write(self, body: dict[str, Any], value: str | None) -> None:
        """Set the field and the structs above it; None removes it, and a map that becomes empty."""
        *above, last = self.path
        holder = at = body
        for part in above:
            key: Any = part[0] if isinstance(part, tuple) else part
            holder, at = at, at[key] if isinstance(part, tuple) else at.get(key) or {}
            holder[key] = at
        if value is not None:
            at[str(last)] = value
            return
        del at[str(last)]
        if not at and isinstance(key, str):
            del holder[key]

    def is_in(self, fields_v1: Any) -> bool:
        """Whether an entry of managedFields has the field."""
        for part in self.path:
            named = {"name": part[1]} if isinstance(part, tuple) else None
            key = f"f:{part}" if named is None else f"k:{json.dumps(named, separators=(',', ':'))}"
            if not isinstance(fields_v1, dict) or key not in fields_v1:
                return False
            fields_v1 = fields_v1[key]
        return True


def owned_by(body: Mapping[str, Any], manager: str, fields: Iterable[FieldPath]) -> frozenset[FieldPath]:
    """Return those of the fields that a field manager owns: it wrote them last."""
    entries = (body.get("metadata") or {}).get("managedFields") or []
    owned = [entry.get("fieldsV1") for entry in entries if entry.get("manager") == manager]
    return frozenset(field for field in fields if any(map(field.is_in, owned)))


class TrainingRuntime(KubernetesObject):
    """A TrainingRuntime or ClusterTrainingRuntime, with the spec of its JobSets."""

    jobset: JobSetSpec = Field(
        default_factory=JobSetSpec, validation_alias=AliasPath("spec", "template", "spec")
    )


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
    if inputs.runtime is None:
        return NoOp(Reason.DELETED, f"{inputs.subject} does not exist, or has another UID")
    runtime = TrainingRuntime.read(inputs.runtime)
    if runtime.being_deleted:
        return NoOp(Reason.DELETED, f"{runtime.ref} is being deleted")
    marks = _marks(inputs.runtime, runtime)
    replaced = _replaced(inputs.runtime, runtime.ref, marks, now)
    no_op = _no_op(runtime.ref, marks)
    if replaced is not None or not _is_reported(inputs.runtime, no_op):
        return replaced or no_op
    event = create_event(runtime.ref, COMPONENT, no_op.reason, no_op.message, now)
    if event.target.name in inputs.event_names:
        return no_op
    reply = Reply("refused", runtime.ref, {"reason": no_op.reason, "message": no_op.message})
    return Plan(no_op.reason, no_op.message, (event,), reply)


def as_executed(plan: Plan) -> Plan:
    """Return the plan with the reason RefusedByApi if it was to replace a runtime and did not."""
    updated = any(action.verb is Verb.UPDATE for action in plan.actions)
    return plan if updated or plan.reason != Reason.RUNTIME_MARKED else as_refused(plan, "refused")


def needs_events(body: Mapping[str, Any]) -> bool:
    """Whether plan_runtime may report a policy that cannot be used, which it does once."""
    runtime = TrainingRuntime.read(body)
    return _is_reported(body, _no_op(runtime.ref, _marks(body, runtime)))


def _is_reported(body: Mapping[str, Any], no_op: NoOp) -> bool:
    asks = any(source.kind != PolicySourceKind.UPSTREAM for source in sources_of_runtime(body))
    return asks and no_op.reason in _REPORTED


def _no_op(ref: ObjectRef, marks: _Marks) -> NoOp:
    policy = marks.policy
    if policy is None:
        return NoOp(Reason.NOT_MARKED, f"{ref} has no policy")
    if policy.failure is not None:
        return NoOp(policy.failure.reason, policy.failure.message)
    if policy.other == "upstream":
        return NoOp(Reason.UPSTREAM_GROUPS, f"{policy.where}: {UPSTREAM_GROUPS}")
    if policy.other:
        return NoOp(Reason.OTHER_SCHEDULER, f"{policy.where}: {policy.other} groups these pods")
    if marks.grouped_by_others and not any(marks.values.values()):
        reason = next(iter(marks.grouped_by_others.values()))
        return NoOp(reason, "; ".join([f"{ref} has no group labels", *marks.notes]))
    return NoOp(Reason.UP_TO_DATE, "; ".join([f"{ref} is up to date", *marks.notes]))


def _replaced(body: Mapping[str, Any], ref: ObjectRef, marks: _Marks, now: datetime) -> Plan | None:
    """Return the replacement of a runtime by one with its marks; None if it has them."""
    changed, done = deepcopy(dict(body)), []
    for path, value in marks.values.items():
        if path.value_in(body) != value:
            path.write(changed, value)
            done.append(f"{path} {'removed' if value is None else '= ' + value}")
    if not done:
        return None
    source = marks.policy.where if marks.policy else "no policy"
    message = f"{source}: {'; '.join([*done, *marks.notes])}"
    refused = event_of_refusal(ref, COMPONENT, now)
    update = Action(Verb.UPDATE, ref, changed, if_refused=(refused,))
    event = create_event(ref, COMPONENT, Reason.RUNTIME_MARKED, message, now, warning=False)
    return Plan(Reason.RUNTIME_MARKED, message, (update, event), Reply("marked", ref, {"changes": done}))


def _marks(body: Mapping[str, Any], runtime: TrainingRuntime) -> _Marks:
    sources = sources_of_runtime(body)
    policy = resolve_policy(sources) if sources else None
    if policy is not None and policy.failure is not None:
        return _Marks(policy, {})
    names = [job.name for job in runtime.jobset.replicated_jobs]
    fields = [_of_jobset("labels", KAI_QUEUE), _of_jobset("annotations", KAI_MINIMUM)]
    for entry in enumerate(names):
        fields += [_of_pod(entry, "metadata", "labels", label) for label in (*LABELS, KAI_QUEUE)]
        fields.append(_of_pod(entry, "spec", "schedulerName"))
    marks = _Marks(policy, dict.fromkeys(fields))
    ours = owned_by(body, COMPONENT, fields)
    try:
        _set_labels(body, runtime, marks, ours)
    except InvalidPolicyError as error:
        policy = policy or EffectivePolicy("")
        failure = GroupingFailure(Reason.INVALID_POLICY, f"{policy.where}: {error}")
        return _Marks(replace(policy, failure=failure), {})
    if policy is not None and policy.other == "kaiScheduler":
        _set_fields_of_kai(runtime, marks, policy.queue or None)
    # Fields that another manager has set to another value stay.
    for path, value in tuple(marks.values.items()):
        current = path.value_in(body)
        if path not in ours and current not in {None, value}:
            del marks.values[path]
            if value is not None:
                asked = f"set by another field manager; the policy asks for {value}"
                marks.notes.append(f"{path} is {current}, {asked}")
    return marks


def _set_labels(
    body: Mapping[str, Any], runtime: TrainingRuntime, marks: _Marks, ours: Collection[FieldPath]
) -> None:
    """Set the group labels that each template should have, unless it was labelled by hand."""
    jobs, policy = runtime.jobset.replicated_jobs, marks.policy
    if len(jobs) > REPLICATED_JOBS:
        message = f"has {len(jobs)} entries; mark_runtime labels {REPLICATED_JOBS}"
        raise InvalidPolicyError("spec.template.spec.replicatedJobs", message)
    paths_of = {
        job.name: {label: _of_pod((index, job.name), "metadata", "labels", label) for label in LABELS}
        for index, job in enumerate(jobs)
    }
    labels: dict[str, dict[str, str]] = {}
    if policy is not None and not policy.other:
        by_hand = {
            name: {label for label, path in paths.items() if path not in ours and path.value_in(body)}
            for name, paths in paths_of.items()
        }
        labels = labels_for(policy.workload, runtime.jobset, by_hand)
    opted_out = policy is not None and policy.other in _BY_POLICY
    for job in jobs:
        reason, wanted = grouped_by_others(job.template), labels.get(job.name, {})
        if reason in _OTHER_GROUPS:
            marks.grouped_by_others[job.name] = reason
            why = f"its template has {_OTHER_GROUPS[reason]}"
            marks.notes.append(f"{job.name} is not labelled ({reason}): {why}")
            wanted = {}
        elif opted_out or job.template.spec.template.spec.scheduler_name in _BY_SCHEDULER_NAME:
            wanted = {group_labels.GROUP: group_labels.OPTED_OUT}
        paths = paths_of[job.name]
        current_group = paths[group_labels.GROUP].value_in(body)
        if current_group is None or paths[group_labels.GROUP] in ours:
            marks.values |= {path: wanted.get(label) for label, path in paths.items()}
            continue
        for path in paths.values():
            del marks.values[path]
        differs = [label for label in wanted if paths[label].value_in(body) != wanted[label]]
        if differs:
            asked = ", ".join(f"{label}: {wanted[label]}" for label in differs)
            kept = f"{job.name} keeps its own group label ({current_group})"
            marks.notes.append(f"{kept}; the policy asks for {asked}")


def _set_fields_of_kai(runtime: TrainingRuntime, marks: _Marks, queue: str | None) -> None:
    jobs = runtime.jobset.replicated_jobs
    for index, job in enumerate(jobs):
        if job.name not in marks.grouped_by_others:
            marks.values[_of_pod((index, job.name), "spec", "schedulerName")] = KAI
            marks.values[_of_pod((index, job.name), "metadata", "labels", KAI_QUEUE)] = queue
    marks.values[_of_jobset("labels", KAI_QUEUE)] = queue
    if any(job.depends_on for job in jobs):
        marks.values[_of_jobset("annotations", KAI_MINIMUM)] = "1"


def _of_jobset(*inside: str) -> FieldPath:
    return FieldPath((*_TEMPLATE, "metadata", *inside))


def _of_pod(entry: tuple[int, str], *inside: str) -> FieldPath:
    return FieldPath((*_TEMPLATE, "spec", "replicatedJobs", entry, "template", "spec", "template", *inside))

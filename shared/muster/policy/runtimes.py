"""mark_runtime: a runtime's policy written on the pod templates that its TrainJobs are made of.

Labels that reach a job later than its first pod are too late, so they are put into the runtime. The runtime
is read, changed and put back as a whole: server-side apply revives deleted runtimes and keeps renamed
replicatedJobs alive as ghosts (seen on Trainer 2.3.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from muster.objects.jobs import JobTemplate
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.policy import bodies, homes, marks
from muster.policy.fields import Path, Slot, owned_by
from muster.policy.homes import Broken, Ruling
from muster.policy.kinds import grouped_by_others
from muster.policy.membership import LABELS, labels_for
from muster.policy.model import Action, Decision, HomeKind, Nothing, Observed, Plan, Reply, Verb
from muster.policy.reasons import Reason
from muster.policy.schema import InvalidPolicyError

COMPONENT = "muster-mark-runtime"
"""Also the field manager: its entry in managedFields is the record of what may be taken back."""

KAI = "kai-scheduler"
KAI_QUEUE = "kai.scheduler/queue"
KAI_MINIMUM = "kai.scheduler/batch-min-member"
"""On a JobSet: how many of its replicatedJobs KAI waits for; it does not look at dependsOn
(jobset_grouper.go, KAI-Scheduler v0.17.0)."""

_BY_POLICY = ("coscheduling", "volcano")
"""Schedulers with gangs of their own that the Trainer knows by podGroupPolicy."""

_BY_SCHEDULER_NAME = ("volcano", "yunikorn")
"""Schedulers with gangs of their own that a template names without any policy."""

_SOMEBODY_ELSES = {
    Reason.UPSTREAM_GROUPS: f"spec.scheduling or the annotation {marks.UPSTREAM_TEMPLATE}",
    Reason.BRING_YOUR_OWN_GROUP: "a schedulingGroup",
}
"""How a Job template says that its pods have groups already."""

_TEMPLATE: Path = ("spec", "template")


@dataclass
class _Wish:
    """What a runtime should carry, and what was left as it is.

    Attributes:
        values: each place of the runtime that is Muster's to write, with its value; None: nothing.
        kept: templates that a person marked otherwise, or that upstream groups, in words.
        left: replicatedJobs whose pods have groups of somebody else's, and how that is known.
    """

    values: dict[Slot, str | None] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    left: dict[str, Reason] = field(default_factory=dict)


def plan_runtime(observed: Observed, now: datetime) -> Decision:
    """The runtime as its policy wants it; marks that nobody asks for any more are taken back."""
    runtime = observed.runtime
    if runtime is None:
        return Nothing(Reason.OBJECT_GONE, f"{observed.subject} does not exist, or another one has its name")
    view = KubernetesObject.read(runtime)
    if view.being_deleted:
        return Nothing(Reason.DELETED, f"{view.ref} is being deleted")
    ruling = _ruling(runtime)
    if isinstance(ruling, Broken):
        return _told(observed, view.ref, ruling.why.reason, ruling.why.message, now)
    try:
        wish = _wish(runtime, ruling)
    except InvalidPolicyError as error:
        where = ruling.where if ruling else ""
        why = homes.broken(where, str(error)).why
        return _told(observed, view.ref, why.reason, why.message, now)
    changed = _changed(runtime, wish)
    if changed is not None:
        return _replaced(view.ref, runtime, changed, ruling, wish, now)
    nothing = _nothing(view.ref, ruling, wish)
    if _in_vain(runtime, nothing):
        return _told(observed, view.ref, nothing.reason, nothing.message, now)
    return nothing


def settled(runtime: Mapping[str, Any]) -> Nothing | None:
    """Why nothing has to be done about a runtime as it is; None where something may have to be.

    Of most runtimes that is all there is to know: no policy, and none taken away.
    """
    found = _ruling(runtime)
    view = KubernetesObject.read(runtime)
    if isinstance(found, Broken) or view.being_deleted:
        return None
    try:
        wish = _wish(runtime, found)
    except InvalidPolicyError:
        return None
    nothing = _nothing(view.ref, found, wish)
    return None if _changed(runtime, wish) is not None or _in_vain(runtime, nothing) else nothing


def _ruling(runtime: Mapping[str, Any]) -> Ruling | Broken | None:
    """The policy of a runtime; None where it has none."""
    found = homes.of_runtime(runtime)
    return homes.rule(found) if found else None


def _in_vain(runtime: Mapping[str, Any], nothing: Nothing) -> bool:
    """Whether a policy of the runtime asks for groups of pods that have somebody else's."""
    policies = [home for home in homes.of_runtime(runtime) if home.kind != HomeKind.UPSTREAM]
    return bool(policies) and nothing.reason in _SOMEBODY_ELSES


def _nothing(ref: ObjectRef, ruling: Ruling | None, wish: _Wish) -> Nothing:
    if ruling is None:
        return Nothing(Reason.NOT_MARKED, f"{ref} has no policy")
    if ruling.other == "upstream":
        return Nothing(Reason.UPSTREAM_GROUPS, f"{ruling.where}: upstream groups these pods")
    if ruling.other:
        return Nothing(Reason.OTHER_SCHEDULER, f"{ruling.where}: {ruling.other} groups these pods")
    if wish.left and not any(wish.values.values()):
        return Nothing(next(iter(wish.left.values())), "; ".join([f"{ref} is not marked", *wish.kept]))
    return Nothing(Reason.UP_TO_DATE, "; ".join([f"{ref} is marked", *wish.kept]))


def _replaced(
    ref: ObjectRef,
    runtime: Mapping[str, Any],
    changed: dict[str, Any],
    ruling: Ruling | None,
    wish: _Wish,
    now: datetime,
) -> Plan:
    done = [
        f"{slot} {'= ' + value if (value := slot.value_in(changed)) is not None else 'taken back'}"
        for slot in _slots(runtime)
        if slot.value_in(runtime) != slot.value_in(changed)
    ]
    by = ruling.where if ruling else "no policy"
    message = f"{by}: {'; '.join([*done, *wish.kept])}"
    replace = Action(Verb.UPDATE, ref, changed)
    event = bodies.create_event(
        ref, component=COMPONENT, warning=False, reason=Reason.RUNTIME_MARKED, message=message, now=now
    )
    return Plan(Reason.RUNTIME_MARKED, message, (replace, event), Reply("marked", ref, {"changes": done}))


def _told(observed: Observed, ref: ObjectRef, reason: Reason, message: str, now: datetime) -> Decision:
    """An Event on the runtime, once, about a policy that cannot be used; what is marked stays as it is."""
    event = bodies.create_event(
        ref, component=COMPONENT, warning=True, reason=reason, message=message, now=now
    )
    if event.target.name in observed.event_names:
        return Nothing(reason, message)
    return Plan(reason, message, (event,), Reply("refused", ref, {"reason": reason, "message": message}))


def _wish(runtime: Mapping[str, Any], ruling: Ruling | None) -> _Wish:
    """What each place should hold.

    Raises:
        InvalidPolicyError: the policy names replicatedJobs that the runtime does not have.
    """
    wish = _Wish(dict.fromkeys(_slots(runtime)))
    entries = {name: entry for _, name, entry in _entries(runtime)}
    steps = {name: _step(entry) for name, entry in entries.items()}
    labels: dict[str, dict[str, str]] = {}
    if ruling is not None and ruling.workload is not None:
        labels = labels_for(ruling.workload, steps)
    for index, name, entry in _entries(runtime):
        job = JobTemplate.model_validate(entry.get("template") or {})
        left = grouped_by_others(job)
        if left in _SOMEBODY_ELSES:
            wish.left[name] = left
            wish.kept.append(f"{name} is left alone ({left}): its template has {_SOMEBODY_ELSES[left]}")
            _wish_for_labels(runtime, wish, index, name, {})
            continue
        others = (ruling is not None and ruling.other in _BY_POLICY) or (
            job.spec.template.spec.scheduler_name in _BY_SCHEDULER_NAME
        )
        wanted = {marks.GROUP: marks.OPTED_OUT} if others else labels.get(name, {})
        _wish_for_labels(runtime, wish, index, name, wanted)
        if ruling is not None and ruling.other == "kaiScheduler":
            wish.values[_pod_slot(index, name, "spec", "schedulerName")] = KAI
            wish.values[_pod_slot(index, name, "metadata", "labels", KAI_QUEUE)] = ruling.queue or None
    if ruling is not None and ruling.other == "kaiScheduler":
        wish.values[Slot((*_TEMPLATE, "metadata", "labels", KAI_QUEUE))] = ruling.queue or None
        if any(entry.get("dependsOn") for entry in entries.values()):
            wish.values[Slot((*_TEMPLATE, "metadata", "annotations", KAI_MINIMUM))] = "1"
    foreign = _foreign(runtime, wish)
    wish.kept += [
        f"{slot} is {slot.value_in(runtime)}, by somebody else; the policy asks for {value}"
        for slot, value in wish.values.items()
        if value is not None and slot in foreign
    ]
    return wish


def _wish_for_labels(
    runtime: Mapping[str, Any], wish: _Wish, index: int, name: str, wanted: Mapping[str, str]
) -> None:
    """The four labels of one template, unless a person wrote its mark."""
    slots = {label: _pod_slot(index, name, "metadata", "labels", label) for label in LABELS}
    mine = owned_by(runtime, COMPONENT)
    by_hand = slots[marks.GROUP].value_in(runtime)
    if by_hand is not None and slots[marks.GROUP] not in mine:
        for slot in slots.values():
            del wish.values[slot]
        differs = [label for label in wanted if slots[label].value_in(runtime) != wanted[label]]
        if differs:
            told = ", ".join(f"{label}: {wanted[label]}" for label in differs)
            wish.kept.append(f"{name} is marked by hand ({by_hand}) and stays so; the policy asks for {told}")
        return
    for label, slot in slots.items():
        wish.values[slot] = wanted.get(label)


def _changed(runtime: Mapping[str, Any], wish: _Wish) -> dict[str, Any] | None:
    """The runtime with the wishes that may be written; None where nothing changes.

    What somebody else wrote is left, whatever is wished; what is not wished any more goes only if it is ours.
    """
    changed = deepcopy(dict(runtime))
    foreign = _foreign(runtime, wish)
    for slot, value in wish.values.items():
        if slot not in foreign and slot.value_in(runtime) != value:
            slot.write(changed, value)
    return None if changed == runtime else changed


def _foreign(runtime: Mapping[str, Any], wish: _Wish) -> set[Slot]:
    """The places that hold something else than is wished, written by somebody else."""
    mine = owned_by(runtime, COMPONENT)
    there = {slot: slot.value_in(runtime) for slot in wish.values.keys() - mine}
    return {slot for slot, value in there.items() if value not in {None, wish.values[slot]}}


def _slots(runtime: Mapping[str, Any]) -> Iterator[Slot]:
    """Every place that mark_runtime may write."""
    yield Slot((*_TEMPLATE, "metadata", "labels", KAI_QUEUE))
    yield Slot((*_TEMPLATE, "metadata", "annotations", KAI_MINIMUM))
    for index, name, _ in _entries(runtime):
        for label in (*LABELS, KAI_QUEUE):
            yield _pod_slot(index, name, "metadata", "labels", label)
        yield _pod_slot(index, name, "spec", "schedulerName")


def _pod_slot(index: int, name: str, *inside: str) -> Slot:
    job = (*_TEMPLATE, "spec", "replicatedJobs", (index, name))
    return Slot((*job, "template", "spec", "template", *inside))


def _entries(runtime: Mapping[str, Any]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    spec = ((runtime.get("spec") or {}).get("template") or {}).get("spec") or {}
    for index, entry in enumerate(spec.get("replicatedJobs") or []):
        yield index, entry["name"], entry


def _step(entry: Mapping[str, Any]) -> str:
    metadata = (entry.get("template") or {}).get("metadata") or {}
    return str((metadata.get("labels") or {}).get(marks.ANCESTOR, ""))

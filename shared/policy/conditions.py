"""Conditions on the owner: do its groups exist, and are its pods placed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from shared.objects.jobs import Job, Pod
from shared.objects.meta import find_condition
from shared.objects.patches import PatchType
from shared.objects.resources import POD_GROUPS
from shared.objects.scheduling import CompositePodGroupTemplate, PodGroup
from shared.objects.versions import GATES_OF_THE_SCHEDULER, HOW_TO_SWITCH_ON
from shared.policy import bodies
from shared.policy.dropped import dropped
from shared.policy.groups import GivenUp, Place, members_to_run
from shared.policy.marks import GATE
from shared.policy.model import Action, Decision, Nothing, Observed, Owner, Plan, Reply, Verb
from shared.policy.ownership import Considered, consider
from shared.policy.reasons import Reason
from shared.policy.resize import flags, wanted_sizes

COMPONENT = "muster-emit-conditions"
READY = "PodGroupsReady"
PLACED = "PodGroupsScheduled"
JOB_PREFIX = "muster.dev/"
"""Condition types of a Job are shared with the whole world there, so ours carry a prefix."""

MESSAGE_LIMIT = 2048
_BINDING_TIME = timedelta(seconds=5)
"""Less than the retries of a trigger take together, so that a pod that stays unbound is no dead letter."""

_WORST_FIRST = (
    Reason.API_NOT_SERVED,
    Reason.GANG_SIZE_FIXED,
    Reason.SCHEDULER_ERROR,
    Reason.UNSCHEDULABLE,
    Reason.WAITING_FOR_POD_GROUP,
    Reason.SCHEDULING_GATED,
    Reason.GROUPS_IGNORED,
    Reason.WAITING_FOR_SCHEDULER,
    Reason.WAITING_FOR_PODS,
    Reason.SCHEDULED,
)
_NEWS = frozenset(
    {
        Reason.SCHEDULED,
        Reason.UNSCHEDULABLE,
        Reason.SCHEDULER_ERROR,
        Reason.GANG_SIZE_FIXED,
        Reason.GROUPS_IGNORED,
    }
)
"""What an Event is written for when a condition begins to say it."""


@dataclass(frozen=True)
class Verdict:
    """What a condition says, before it has a time."""

    type: str
    true: bool
    reason: str
    message: str


@dataclass(frozen=True)
class GroupState:
    """Where one PodGroup of an owner stands."""

    reason: Reason
    message: str


def plan_conditions(observed: Observed, now: datetime) -> Decision:
    """What the owner's conditions must say now, and an Event when its pods' fate changed."""
    considered = consider(observed)
    if isinstance(considered, Nothing) or observed.owner is None:
        return considered if isinstance(considered, Nothing) else Nothing(Reason.OBJECT_GONE)
    ready, fate = verdicts(observed, considered)
    if fate.reason == Reason.WAITING_FOR_SCHEDULER:
        fate = _ignored(observed, fate, now) or fate
    said = (ready, fate)
    written = status_write(observed.owner, said, now)
    binding = not fate.true and _binds_now(observed, now)
    if written is None:
        return Nothing(Reason.UP_TO_DATE, f"{observed.owner.ref} says so already", come_again=binding)
    root = considered.gang.root
    news = tuple(
        bodies.create_event(
            root, component=COMPONENT, warning=not one.true, reason=one.reason, message=one.message, now=now
        )
        for one in said
        if _is_news(observed.owner, one, considered.flaw)
    )
    reply = Reply(
        "scheduled" if fate.true else "waiting", root, {"reason": fate.reason, "message": fate.message}
    )
    return Plan(Reason.CONDITIONS_UPDATED, fate.message, (written, *news), reply, come_again=binding)


def _binds_now(observed: Observed, now: datetime) -> bool:
    """Whether a group was placed a moment ago and its pods are still being bound.

    The scheduler says so before it binds, and no event of a PodGroup follows; coming again shortly sees it.
    An event of one group waits for that one: a job of many groups would outlast the retries of its first.
    """
    subject = observed.subject
    unbound = {pod.pod_group_name for pod in observed.pods if not (pod.bound or pod.finished)}
    about = unbound & {subject.name} if subject.kind == POD_GROUPS.kind else unbound
    return any(
        group.placed_at is not None and abs(now - group.placed_at) < _BINDING_TIME
        for group in observed.groups
        if group.metadata.name in about
    )


def _ignored(observed: Observed, fate: Verdict, now: datetime) -> Verdict | None:
    """What to say where pods were bound some time ago and the scheduler never spoke of their group.

    One with the gates places a group and then binds its pods; one without binds each pod by itself.
    """
    unheard = {group.metadata.name for group in observed.groups if not group.placed and group.refusal is None}
    alone = {
        pod.pod_group_name
        for pod in observed.pods
        if pod.pod_group_name in unheard
        and pod.bound_at is not None
        and now - pod.bound_at > _BINDING_TIME
        and not pod.finished
    }
    if not alone:
        return None
    words = f"kube-scheduler bound pods of {', '.join(sorted(alone))} one by one: {GATES_OF_THE_SCHEDULER}"
    return replace(fate, reason=Reason.GROUPS_IGNORED, message=f"{fate.message}; {words}")


def verdicts(observed: Observed, considered: Considered) -> tuple[Verdict, Verdict]:
    """Both conditions of an owner, from its groups and pods as they are now."""
    if not observed.scheduling.served:
        return _in_no_gang(GivenUp(Reason.API_NOT_SERVED, HOW_TO_SWITCH_ON))
    if considered.flaw is not None and not considered.tree:
        return _in_no_gang(considered.flaw, held=considered.ruling.holds)
    groups = {group.metadata.name: group for group in observed.groups}
    fixed_in = "" if observed.scheduling.resizable else observed.scheduling.version
    needed = members_to_run(considered.gang, observed.jobs, observed.pods)
    states: list[GroupState] = []
    composites = {group.metadata.name for group in observed.composites}
    missing = [name for name in composite_names(considered) if name not in composites]
    stand_ins: list[PodGroup] = []
    members: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in observed.pods:
        members[pod.pod_group_name].append(pod)
    for place, name in places_of(considered):
        group = groups.get(name)
        if group is None:
            missing.append(name)
        elif bodies.STAND_IN in group.metadata.annotations:
            stand_ins.append(group)
        stuck = _too_few(group, members[name], needed[place], fixed_in) if group and fixed_in else None
        states.append(stuck or state_of(name, group, members[name], needed[place]))
    stand_ins += _stand_ins_beside(observed, considered)
    total = len(states) + len(list(composite_names(considered)))
    ready = _ready(considered.flaw, missing, stand_ins, total)
    if ready.true:
        ready = _with_dropped(observed, considered, _with_sizes(observed, considered, ready))
    return ready, _placed(states, observed.failed_create)


def _stand_ins_beside(observed: Observed, considered: Considered) -> list[PodGroup]:
    """Stand-ins of live pods whose template is not Muster's to group."""
    wanted = {name for _, name in places_of(considered)}
    named = {pod.pod_group_name for pod in observed.pods if not (pod.finished or pod.being_deleted)}
    return [
        group
        for group in observed.groups
        if bodies.STAND_IN in group.metadata.annotations
        and group.metadata.name in named - wanted
        and bodies.belongs_to(group.metadata.labels, considered.gang.root.uid)
    ]


def _in_no_gang(why: GivenUp, *, held: bool = False) -> tuple[Verdict, Verdict]:
    fate = f"the pods {'stay gated' if held else 'are scheduled one by one'}: {why.message}"
    return (
        Verdict(READY, true=False, reason=why.reason, message=why.message),
        Verdict(PLACED, true=False, reason=why.reason, message=fate),
    )


def _with_dropped(observed: Observed, considered: Considered, ready: Verdict) -> Verdict:
    """The verdict; where the API server dropped what the policy asks for, with what."""
    made = observed.workload
    if made is None or not bodies.belongs_to(made.metadata.labels, considered.gang.root.uid):
        return ready
    lost = dropped(considered.tree, made)
    if not lost:
        return ready
    reason = Reason.FIELDS_DROPPED if ready.reason == Reason.POD_GROUPS_EXIST else ready.reason
    return replace(ready, reason=reason, message=f"{ready.message}; not kept by the API server: {lost}")


def _with_sizes(observed: Observed, considered: Considered, ready: Verdict) -> Verdict:
    """The verdict; where minCount does not follow the pods, with what differs.

    Where it cannot, only growth is told: a gang that shrinks as its members finish is as it should be.
    """
    flagged, version = flags(considered), observed.scheduling.version
    if considered.own is not None or not (flagged or not observed.scheduling.resizable):
        return ready
    wanted = wanted_sizes(observed, considered)
    differ = [
        f"{group.metadata.name} has minCount {group.spec.scheduling_policy.min_count}, "
        f"its pods ask for {wanted[group.metadata.name]}"
        for group in observed.groups
        if _differs(group, wanted.get(group.metadata.name, 0), any_way=flagged)
    ]
    if not differ:
        return ready
    why = "onScale is Flag" if flagged else f"{version} does not let minCount change"
    reason = Reason.SCALING_FLAGGED if flagged else Reason.GANG_SIZE_FIXED
    return replace(ready, reason=reason, message=f"{ready.message}; {why}: {'; '.join(differ)}")


def _differs(group: PodGroup, wanted: int, *, any_way: bool) -> bool:
    current = group.spec.scheduling_policy.min_count
    return wanted > current or (any_way and 0 < wanted < current)


def places_of(considered: Considered) -> Iterator[tuple[Place, str]]:
    """Every PodGroup the owner should have: its place in the tree and its name."""
    for root in considered.tree:
        for leaf in root.leaves():
            for suffix in leaf.sizes:
                yield (leaf.name, suffix), considered.gang.pod_group_name(leaf.name, suffix)


def composite_names(considered: Considered) -> Iterator[str]:
    """Every CompositePodGroup the owner should have, by the user's own Workload where that rules."""
    if considered.own is not None:
        own = (template for template, _ in considered.own.hierarchy())
        names = [template.name for template in own if isinstance(template, CompositePodGroupTemplate)]
    else:
        names = [group.name for root in considered.tree for group in root.composites()]
    return (considered.gang.pod_group_name(name, "") for name in names)


def _too_few(group: PodGroup, pods: list[Pod], needed: int, version: str) -> GroupState | None:
    """A gang whose minCount cannot follow, with fewer pods left to run: those without a node get none."""
    live, bound = _live(pods)
    minimum = group.spec.scheduling_policy.min_count
    if not bound < needed < minimum:
        return None
    why = f"minCount {minimum} cannot change in {version}, and {needed} pods are still to run"
    counts = _counts(group.metadata.name, live, bound, needed)
    return GroupState(Reason.GANG_SIZE_FIXED, f"{counts}; {why}: create the job anew")


def _live(pods: list[Pod]) -> tuple[list[Pod], int]:
    live = [pod for pod in pods if not (pod.finished or pod.being_deleted)]
    return live, sum(pod.bound for pod in live)


def _counts(name: str, live: list[Pod], bound: int, needed: int) -> str:
    return f"{name}: {bound} of {max(needed, len(live))} pods bound"


def state_of(name: str, group: PodGroup | None, pods: list[Pod], needed: int) -> GroupState:
    """Where a group stands.

    Args:
        name: the name of the PodGroup.
        group: the PodGroup; None while there is none.
        pods: pods stamped with the name.
        needed: pods that are still to run at once.
    """
    live, bound = _live(pods)
    counts = _counts(name, live, bound, needed)
    if group is None:
        return GroupState(Reason.WAITING_FOR_POD_GROUP, f"{name}: the PodGroup does not exist yet")
    if not live and needed <= 0:
        return GroupState(Reason.SCHEDULED, f"{name}: no pod of it is still to run")
    if group.refusal is not None:
        error = group.refusal[0] == Reason.SCHEDULER_ERROR
        reason = Reason.SCHEDULER_ERROR if error else Reason.UNSCHEDULABLE
        return GroupState(reason, f"{counts}; {group.refusal[1] or group.refusal[0]}")
    gates = {gate for pod in live for gate in pod.gates}
    if gates:
        others = ", ".join(sorted(gates - {GATE})) or "Muster's, about to be lifted"
        return GroupState(Reason.SCHEDULING_GATED, f"{counts}; scheduling gates: {others}")
    if len(live) < max(needed, 0 if group.placed else group.spec.scheduling_policy.min_count):
        return GroupState(Reason.WAITING_FOR_PODS, f"{counts}; {len(live)} exist")
    refused = next(filter(None, map(_refusal_of_pod, live)), None)
    if refused is not None:
        return GroupState(refused[0], f"{counts}; {refused[1]}")
    if bound < len(live) or not group.placed:
        return GroupState(Reason.WAITING_FOR_SCHEDULER, counts)
    return GroupState(Reason.SCHEDULED, counts)


def _refusal_of_pod(pod: Pod) -> tuple[Reason, str] | None:
    """Why the scheduler has no place for a pod: after a restart the group itself still says it was placed."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if pod.bound or condition is None or condition.get("status") == "True":
        return None
    told = {str(reason): reason for reason in (Reason.SCHEDULER_ERROR, Reason.UNSCHEDULABLE)}
    reason = told.get(condition.get("reason", ""))
    return None if reason is None else (reason, condition.get("message", ""))


def status_write(owner: Owner, said: tuple[Verdict, ...], now: datetime) -> Action | None:
    """The one write that makes the owner's conditions say this, or None where they do already.

    A merge patch of the whole list with ours first: the last condition of a TrainJob is its State column and
    stays the Trainer's. It carries the resourceVersion just read, because the status subresource ignores a
    wrong UID.
    """
    current = owner.status.conditions
    wanted = [_dated(owner, verdict, current, now) for verdict in said]
    ours = {condition["type"] for condition in wanted}
    kept = [condition for condition in current if condition["type"] not in ours]
    mine = [condition for condition in current if condition["type"] in ours]
    if sorted(mine, key=_type) == sorted(wanted, key=_type):
        return None
    body = {
        "metadata": {"resourceVersion": owner.metadata.resource_version},
        "status": {"conditions": [*wanted, *kept]},
    }
    return Action(Verb.PATCH, owner.ref, body, patch=PatchType.MERGE, subresource="status")


def _ready(flaw: GivenUp | None, missing: list[str], stand_ins: list[PodGroup], total: int) -> Verdict:
    if flaw is not None:
        return Verdict(READY, true=False, reason=flaw.reason, message=flaw.message)
    if stand_ins:
        reason, _, message = stand_ins[0].metadata.annotations[bodies.STAND_IN].partition(": ")
        named = ", ".join(group.metadata.name for group in stand_ins)
        return Verdict(READY, true=False, reason=reason, message=f"stand-ins {named}: {message}")
    if missing:
        message = f"{total - len(missing)} of {total} PodGroups exist; missing: {', '.join(missing)}"
        return Verdict(READY, true=False, reason=Reason.WAITING_FOR_POD_GROUP, message=message)
    return Verdict(
        READY, true=True, reason=Reason.POD_GROUPS_EXIST, message=f"{total} of {total} PodGroups exist"
    )


def _placed(states: list[GroupState], failed_create: str) -> Verdict:
    worst = min((state.reason for state in states), key=_WORST_FIRST.index, default=Reason.SCHEDULED)
    done = sum(state.reason == Reason.SCHEDULED for state in states)
    waiting = [state for state in states if state.reason != Reason.SCHEDULED] or states
    told = [state.message for state in sorted(waiting, key=lambda state: _WORST_FIRST.index(state.reason))]
    message = f"{done} of {len(states)} groups scheduled; {'; '.join(told)}"
    if failed_create and any(state.reason == Reason.WAITING_FOR_PODS for state in states):
        message += f"; pods could not be created: {failed_create}"
    return Verdict(PLACED, true=worst == Reason.SCHEDULED, reason=worst, message=message)


def _dated(
    owner: Owner, verdict: Verdict, current: tuple[Mapping[str, Any], ...], now: datetime
) -> dict[str, Any]:
    kind = _type_on(owner, verdict)
    status = "True" if verdict.true else "False"
    before = find_condition(current, kind)
    since = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    if before is not None and before.get("status") == status:
        since = before.get("lastTransitionTime") or since
    condition: dict[str, Any] = {
        "type": kind,
        "status": status,
        "reason": str(verdict.reason),
        "message": verdict.message[:MESSAGE_LIMIT],
        "lastTransitionTime": since,
    }
    return {**(before or {}), **condition}


def _is_news(owner: Owner, verdict: Verdict, flaw: GivenUp | None) -> bool:
    """Whether the scheduler's word changed, or the groups cannot be had and nobody has said so yet.

    The step that gives up says it with its condition; where the write of that one was a conflict and ours
    came first, the Event is ours to make. Counts alone are no news.
    """
    kind = _type_on(owner, verdict)
    before = find_condition(owner.status.conditions, kind)
    new = before is None or before.get("reason") != verdict.reason
    return new and (verdict.reason in _NEWS or (flaw is not None and verdict.type == READY))


def _type_on(owner: Owner, verdict: Verdict) -> str:
    return f"{JOB_PREFIX}{verdict.type}" if isinstance(owner, Job) else verdict.type


def _type(condition: Mapping[str, Any]) -> str:
    return str(condition["type"])

"""Conditions on the owner: do its groups exist, and are its pods placed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta

from muster.objects.jobs import Pod
from muster.objects.meta import find_condition
from muster.objects.resources import POD_GROUPS
from muster.objects.scheduling import PodGroup
from muster.objects.versions import GATES_OF_THE_SCHEDULER, HOW_TO_SWITCH_ON
from muster.policy import bodies
from muster.policy.dropped import dropped
from muster.policy.group_states import WORST_FIRST, GroupState, state_of, too_few
from muster.policy.groups import GivenUp, members_to_run
from muster.policy.model import Decision, Nothing, Observed, Owner, Plan, Reply
from muster.policy.ownership import Considered, consider
from muster.policy.reasons import Reason
from muster.policy.resize import flags, wanted_sizes
from muster.policy.status import PLACED, READY, Verdict, status_write, type_on

COMPONENT = "muster-emit-conditions"
_BINDING_TIME = timedelta(seconds=5)
"""Less than the retries of a trigger take together, so that a pod that stays unbound is no dead letter."""

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
    wanted_composites = list(considered.composite_names())
    missing = [name for name in wanted_composites if name not in composites]
    stand_ins: list[PodGroup] = []
    members: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in observed.pods:
        members[pod.pod_group_name].append(pod)
    for place, name in considered.places():
        group = groups.get(name)
        if group is None:
            missing.append(name)
        elif bodies.STAND_IN in group.metadata.annotations:
            stand_ins.append(group)
        stuck = too_few(group, members[name], needed[place], fixed_in) if group and fixed_in else None
        states.append(stuck or state_of(name, group, members[name], needed[place]))
    stand_ins += _stand_ins_beside(observed, considered)
    total = len(states) + len(wanted_composites)
    ready = _ready(considered.flaw, missing, stand_ins, total)
    if ready.true:
        ready = _with_dropped(observed, considered, _with_sizes(observed, considered, ready))
    return ready, _placed(states, observed.failed_create)


def _stand_ins_beside(observed: Observed, considered: Considered) -> list[PodGroup]:
    """Stand-ins of live pods whose template is not Muster's to group."""
    wanted = {name for _, name in considered.places()}
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
    worst = min((state.reason for state in states), key=WORST_FIRST.index, default=Reason.SCHEDULED)
    done = sum(state.reason == Reason.SCHEDULED for state in states)
    waiting = [state for state in states if state.reason != Reason.SCHEDULED] or states
    told = [state.message for state in sorted(waiting, key=lambda state: WORST_FIRST.index(state.reason))]
    message = f"{done} of {len(states)} groups scheduled; {'; '.join(told)}"
    if failed_create and any(state.reason == Reason.WAITING_FOR_PODS for state in states):
        message += f"; pods could not be created: {failed_create}"
    return Verdict(PLACED, true=worst == Reason.SCHEDULED, reason=worst, message=message)


def _is_news(owner: Owner, verdict: Verdict, flaw: GivenUp | None) -> bool:
    """Whether the scheduler's word changed, or the groups cannot be had and nobody has said so yet.

    The step that gives up says it with its condition; where the write of that one was a conflict and ours
    came first, the Event is ours to make. Counts alone are no news.
    """
    kind = type_on(owner, verdict)
    before = find_condition(owner.status.conditions, kind)
    new = before is None or before.get("reason") != verdict.reason
    return new and (verdict.reason in _NEWS or (flaw is not None and verdict.type == READY))

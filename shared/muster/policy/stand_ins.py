"""Giving up visibly: basic PodGroups let stamped pods run, and the owner is told why there is no gang."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from muster.objects.jobs import Pod
from muster.objects.meta import ObjectRef
from muster.policy import bodies
from muster.policy.conditions import verdicts
from muster.policy.groups import GivenUp, Group
from muster.policy.kinds import Gang
from muster.policy.marks import REPLICATED_JOB, stamped_name
from muster.policy.model import Action, Decision, Nothing, Observed, Owner, Plan, Reply
from muster.policy.ownership import Considered
from muster.policy.priorities import NEVER
from muster.policy.reasons import Reason
from muster.policy.status import READY, Verdict, status_write

_NOTHING_RUNS = frozenset({Reason.DELETED, Reason.FINISHED, Reason.AWAITING_JOBSET})


def give_up(
    observed: Observed, considered: Considered, why: GivenUp, component: str, now: datetime
) -> Decision:
    """Stand-ins for every group of the owner, its condition and an Event.

    Where its groups are too many they are made for the pods that exist; later pods get theirs by sweeps.

    Args:
        observed: with the groups that exist already, and the owner's pods.
        considered: the owner.
        why: what makes its groups impossible.
        component: the step that gives up, for the Event.
        now: for the condition and the Event.
    """
    let_go = observed.scheduling.served and not considered.ruling.holds
    made = tuple(_instead_of_groups(observed, considered, why)) if let_go else ()
    owner = observed.owner
    ready, _ = verdicts(observed, replace(considered, flaw=why))
    told = tuple(_tell(owner, ready, component, now)) if owner else ()
    if not (made or told):
        return Nothing(why.reason, why.message)
    reply = Reply("gave-up", considered.gang.root, {"reason": why.reason, "message": why.message})
    return Plan(why.reason, why.message, (*made, *told), reply)


def _instead_of_groups(observed: Observed, considered: Considered, why: GivenUp) -> Iterator[Action]:
    if not considered.tree:
        root = considered.gang.root
        yield from (_of_pod(root, pod, why) for pod in _first_of_each_missing_group(observed))
    there = {group.metadata.name for group in observed.groups}
    leaves = {leaf.name: leaf for root in considered.tree for leaf in root.leaves()}
    for (leaf, suffix), name in considered.places():
        if name not in there:
            yield _of_leaf(considered.gang, leaves[leaf], suffix, why)


def may_have_strays(considered: Considered) -> bool:
    """Whether some of an owner's pods may be stamped although their template is not Muster's to group.

    stamp-pods sees the mark on a pod; it sees neither what the pod's Job says of upstream's groups nor that
    the namespace lost its label since that Job was made.
    """
    unseen = {Reason.NOT_MARKED, Reason.UPSTREAM_GROUPS}
    return any(pod_set.unmarked in unseen for pod_set in considered.gang.pod_sets)


def beside(
    observed: Observed, considered: Considered, decision: Decision, component: str, now: datetime
) -> Decision:
    """The decision about an owner's groups, and stand-ins for stamped pods that are in none of them.

    Args:
        observed: with the owner's pods and the groups they name, where it may have such pods.
        considered: the owner.
        decision: about its groups.
        component: the step that decides, for the Event.
        now: for the condition and the Event.
    """
    made = tuple(_of_strays(observed, considered))
    if not made or observed.owner is None or decision.come_again:
        return decision
    if isinstance(decision, Plan) and any(action.subresource == "status" for action in decision.actions):
        return replace(decision, actions=(*decision.actions, *made))  # the owner is told what is worse
    reason, _, why = (made[0].body or {})["metadata"]["annotations"][bodies.STAND_IN].partition(": ")
    message = f"stand-ins {', '.join(action.target.name for action in made)}: {why}"
    told = _tell(observed.owner, Verdict(READY, true=False, reason=reason, message=message), component, now)
    if isinstance(decision, Plan):
        return replace(decision, actions=(*decision.actions, *made, *told))
    return Plan(Reason.STAND_INS_CREATED, message, (*made, *told))


def for_stamped_pods(observed: Observed, skipped: Nothing, component: str, now: datetime) -> Decision:
    """Stand-ins for pods that were stamped although their owner is skipped; else the reason it is skipped.

    The pods alone tell the names, so this works whatever is wrong with the owner.

    Args:
        observed: with the owner's pods and the groups they name.
        skipped: why the owner is skipped.
        component: the step that skips it, for the Event.
        now: for the condition and the Event.
    """
    if observed.owner is None or skipped.reason in _NOTHING_RUNS:
        return skipped
    why = GivenUp(skipped.reason, skipped.message)
    made = [_of_pod(observed.owner.ref, pod, why) for pod in _first_of_each_missing_group(observed)]
    if not made:
        return skipped
    message = f"stand-ins {', '.join(action.target.name for action in made)}: {skipped.message}"
    told = _tell(
        observed.owner, Verdict(READY, true=False, reason=skipped.reason, message=message), component, now
    )
    return Plan(Reason.STAND_INS_CREATED, f"{len(made)} basic PodGroups: {skipped.message}", (*made, *told))


def refused(
    gang: Gang,
    action: Action,
    places: tuple[tuple[Group, str], ...],
    component: str,
    now: datetime,
    *,
    hold: bool,
) -> Action:
    """The action; where the API refuses it an Event instead and, unless pods are held, stand-ins.

    Args:
        gang: the owner.
        action: the creation of a group.
        places: the PodGroups whose pods need it: itself, or all those below a composite one.
        component: the step, for the Event.
        now: for the Event.
        hold: whether the pods stay gated.
    """
    why = GivenUp(Reason.REFUSED_BY_API, "{refusal}")
    never = action.body is not None and action.body["spec"].get("preemptionPolicy") == NEVER
    stand_ins = [_of_leaf(gang, leaf, suffix, why, never_preempts=never) for leaf, suffix in places]
    event = bodies.create_event(
        gang.root,
        component=component,
        warning=True,
        reason=Reason.REFUSED_BY_API,
        message="{refusal}",
        now=now,
    )
    # The Event first: what refused the group, a quota for one, may refuse the stand-in too.
    return replace(action, if_refused=(event,) if hold else (event, *stand_ins))


def _of_strays(observed: Observed, considered: Considered) -> Iterator[Action]:
    wanted = {name for _, name in considered.places()}
    templates = {pod_set.replicated_job: pod_set for pod_set in considered.gang.pod_sets}
    for pod in _first_of_each_missing_group(observed):
        template = templates.get(pod.metadata.labels.get(REPLICATED_JOB, ""))
        if template is None or pod.pod_group_name in wanted:
            continue
        message = f"{template.path} is not Muster's to group, but its pods are stamped"
        why = GivenUp(template.unmarked or Reason.NOT_MARKED, message)
        yield _of_pod(considered.gang.root, pod, why)


def _of_leaf(gang: Gang, leaf: Group, suffix: str, why: GivenUp, *, never_preempts: bool = False) -> Action:
    never = never_preempts or leaf.never_preempts_at(suffix)
    name, one_class = gang.pod_group_name(leaf.name, suffix), leaf.priority_class_at(suffix)
    return bodies.create_stand_in(gang.root, name, one_class, why, never_preempts=never)


def _of_pod(root: ObjectRef, pod: Pod, why: GivenUp) -> Action:
    never = pod.spec.preemption_policy == NEVER
    return bodies.create_stand_in(
        root, pod.pod_group_name, pod.spec.priority_class_name, why, never_preempts=never
    )


def _tell(owner: Owner, verdict: Verdict, component: str, now: datetime) -> Iterator[Action]:
    written = status_write(owner, (verdict,), now)
    if written is not None:
        yield written
        yield bodies.create_event(
            owner.ref,
            component=component,
            warning=True,
            reason=verdict.reason,
            message=verdict.message,
            now=now,
        )


def _first_of_each_missing_group(observed: Observed) -> Iterator[Pod]:
    """Only groups that stamp-pods named: one that a user names will be made by that user."""
    there = {group.metadata.name for group in observed.groups}
    for pod in observed.pods:
        name = pod.pod_group_name
        stamped = name and name == stamped_name(pod.metadata.labels)
        if stamped and name not in there and not (pod.finished or pod.being_deleted):
            there.add(name)
            yield pod

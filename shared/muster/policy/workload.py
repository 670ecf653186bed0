"""create_workload: an owner's groups compiled into its Workload."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from muster.objects.meta import ObjectRef
from muster.objects.scheduling import Workload
from muster.policy import bodies, stand_ins
from muster.policy.groups import GivenUp
from muster.policy.homes import annotations_of
from muster.policy.model import Action, Decision, Nothing, Observed, Plan, Reply, Verb
from muster.policy.orphans import plan_orphan
from muster.policy.ownership import Considered, consider, workload_name
from muster.policy.reasons import Reason

COMPONENT = "muster-create-workload"
_MAY_BE_STAMPED = frozenset({Reason.UPSTREAM_GROUPS, Reason.MANAGED_ELSEWHERE, Reason.OTHER_SCHEDULER})
"""Reasons to skip an owner that admission does not know when it stamps the pods."""


def plan_workload(observed: Observed, now: datetime) -> Decision:
    """The Workload of an owner, created once and never updated; or stand-ins where it cannot be had."""
    if observed.orphan is not None:
        return plan_orphan(observed.orphan, observed.live_uids)
    considered = consider(observed)
    if isinstance(considered, Nothing):
        return stand_ins.for_stamped_pods(observed, considered, COMPONENT, now)
    flaw = considered.flaw or _stranger(observed.workload, considered)
    decision = (
        _for_owner(observed, considered)
        if flaw is None
        else stand_ins.give_up(observed, considered, flaw, COMPONENT, now)
    )
    return stand_ins.beside(observed, considered, decision, COMPONENT, now)


def _for_owner(observed: Observed, considered: Considered) -> Decision:
    if considered.own is not None:
        return Nothing(
            Reason.OWN_WORKLOAD, f"Workload {considered.own.metadata.name} rules and is never written"
        )
    if observed.workload is not None:
        return _name_in_use(observed, observed.workload, considered.gang.root)
    return _create(considered)


def needs_groups(observed: Observed) -> bool:
    """Whether plan_workload may make stand-ins, and so has to know the groups and pods there are."""
    considered = consider(observed)
    if isinstance(considered, Nothing):
        # NotMarked: the namespace lost its label, but Jobs marked before go on making stamped pods.
        unmarked_jobset = considered.reason == Reason.NOT_MARKED and observed.jobset is not None
        return unmarked_jobset or considered.reason in _MAY_BE_STAMPED
    if stand_ins.may_have_strays(considered):
        return True
    return (considered.flaw or _stranger(observed.workload, considered)) is not None


def _create(considered: Considered) -> Plan:
    root = considered.gang.root
    name = workload_name(root)
    action = bodies.create_workload(root, name, considered.tree, annotations_of(considered.ruling))
    sizes = ", ".join(
        f"{group.name} ({'gang of ' + str(group.template_min_count) if group.gang else 'basic'})"
        for group in considered.tree
    )
    message = f"Workload {name} for {root}: {sizes}"
    return Plan(Reason.WORKLOAD_CREATED, message, (action,), Reply("created", root, {"workload": name}))


def _stranger(workload: Workload | None, considered: Considered) -> GivenUp | None:
    if workload is None or considered.own is not None or bodies.is_musters(workload.metadata.labels):
        return None
    named = workload.spec.controller_ref
    return GivenUp(
        Reason.WORKLOAD_NAME_TAKEN,
        f"Workload {workload.metadata.name} exists and has controllerRef {named.kind} {named.name}",
    )


def _name_in_use(observed: Observed, workload: Workload, root: ObjectRef) -> Decision:
    if workload.being_deleted:
        return Nothing(Reason.BEING_DELETED, f"{workload.ref} is being deleted", come_again=True)
    if bodies.belongs_to(workload.metadata.labels, root.uid):
        return Nothing(Reason.UP_TO_DATE, f"{workload.ref} exists")
    if observed.leftover_owner_lives:
        return Nothing(
            Reason.WORKLOAD_NAME_TAKEN,
            f"{workload.ref} belongs to another owner, which still exists",
            come_again=True,
        )
    return Plan(
        Reason.LEFTOVER_REMOVED,
        f"{workload.ref} was left behind by an earlier owner of that name",
        (Action(Verb.DELETE, replace(workload.ref, uid=workload.metadata.uid)),),
        come_again=True,
    )

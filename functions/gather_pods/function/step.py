"""A pod of any controller appears that says how many start together: its PodGroup is made."""

from __future__ import annotations

from muster.cluster import execute
from muster.cluster.observe import sweep
from muster.cluster.observe.gathered import AddedTo, gathered_groups, read_gathered
from muster.cluster.permissions import may
from muster.events.parse import OtherEvent, ResourceEvent, owner_of
from muster.events.predicates import not_for_step
from muster.objects import resources
from muster.objects.meta import ObjectRef
from muster.objects.resources import CONFIGMAPS, EVENTS, POD_GROUPS, PODS
from muster.policy.group_labels import MIN_COUNT
from muster.policy.model import NoOp
from muster.policy.plans.gather_pods import plan_gathering
from muster.policy.reasons import Reason
from muster.policy.sources.source import CONFIG_MAP
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return NotForThisStep: the events of pods have replies of patch_pods."""
    return not_for_step(event) or event.ref


def added_to(event: OtherEvent) -> ObjectRef | NoOp:
    """Return the PodGroup to which a pod was added; pods that are added together share a run."""
    group = owner_of(event)
    if group.kind != POD_GROUPS.kind:
        return NoOp(Reason.NOT_FOR_THIS_STEP, f"{group} is no PodGroup")
    return AddedTo(POD_GROUPS.api_version, group.kind, group.namespace, group.name)


STEP = Step(
    name="gather_pods",
    predicate=predicate,
    observe=read_gathered,
    plan=plan_gathering,
    execute=execute.in_order,
    other_events=added_to,
    swept=gathered_groups,
    lists=(sweep.Listing(PODS, labels=MIN_COUNT), sweep.Listing(POD_GROUPS)),
    permissions=may("list", PODS)
    | may("get", resources.STATEFUL_SETS, resources.REPLICA_SETS, resources.DEPLOYMENTS)
    | may("get", CONFIGMAPS, name=CONFIG_MAP)
    | may("get list create patch delete", POD_GROUPS)
    | may("create", EVENTS),
)

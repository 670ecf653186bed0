"""A Job or JobSet changes: minCount follows the pods that are still to run, and groups end with the work."""

from __future__ import annotations

from muster.cluster import execute, permissions
from muster.cluster.observe import sweep
from muster.cluster.observe.owner import read_owner_groups
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent
from muster.events.predicates import UPDATE, not_for_step, resized, stopped_or_started
from muster.objects.meta import ObjectRef
from muster.objects.resources import COMPOSITE_POD_GROUPS, EVENTS, POD_GROUPS, PODS, WORKLOADS
from muster.policy.model import NoOp, Reply
from muster.policy.plans.resize_gang import plan_resize
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return the updated Job or JobSet; a NoOp if its groups cannot change, or neither size nor pods did."""
    return not_for_step(event, Job={UPDATE}, JobSet={UPDATE}) or resized(event)


def look(event: ResourceEvent) -> Reply | None:
    """Return the reply to an update after which emit_conditions and patch_pods have to look at the owner."""
    skipped = not_for_step(event, Job={UPDATE}, JobSet={UPDATE})
    return Reply("look", event.ref) if skipped is None and stopped_or_started(event) else None


STEP = Step(
    name="resize_gang",
    predicate=predicate,
    observe=read_owner_groups,
    plan=plan_resize,
    execute=execute.in_order,
    passed_on=look,
    swept=sweep.owners,
    lists=(sweep.ALL_PODS, *sweep.groups_and_owners()),
    permissions=permissions.READ_OWNERS
    | permissions.READ_COMPOSITES
    | may("list", PODS)
    | may("patch", WORKLOADS, POD_GROUPS)
    | may("create delete", COMPOSITE_POD_GROUPS)
    | may("delete", POD_GROUPS)
    | may("create", EVENTS),
)

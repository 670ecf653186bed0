"""A gang lost members and found no room for others: it waits again as a whole, or its Jobs fail."""

from __future__ import annotations

from muster.cluster import execute, permissions
from muster.cluster.observe import sweep
from muster.cluster.observe.owner import read_owner_groups
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent
from muster.events.predicates import not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.resources import EVENTS, JOBS, PODS
from muster.policy.model import NoOp
from muster.policy.plans.restart_gang import plan_restart
from muster.runtime.step import Step


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """Return a NoOp: no event tells that a time has passed, so only sweeps look."""
    return not_for_step(event) or event.ref


STEP = Step(
    name="restart_gang",
    predicate=predicate,
    observe=read_owner_groups,
    plan=plan_restart,
    execute=execute.in_parallel,
    swept=sweep.owners,
    lists=(sweep.ALL_PODS, *sweep.groups_and_owners()),
    permissions=permissions.READ_OWNERS
    | permissions.READ_COMPOSITES
    | may("list", PODS)
    | may("create", PODS, subresource="eviction")
    | may("patch", JOBS, subresource="status")
    | may("create", EVENTS),
)

"""The definition of a step: predicate, observe, plan, execute, and the objects of its sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from muster.cluster.interface import Cluster
from muster.cluster.observe.sweep import Listing
from muster.cluster.permissions import SWEEP, Permissions
from muster.events.parse import OtherEvent, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import Decision, NoOp, Plan, Reply
from muster.policy.reasons import Reason


@dataclass(frozen=True)
class Step:
    """A reaction to events: one step is one function.

    Attributes:
        name: the folder, `create_workload`; with dashes the service, trigger, role and field manager.
        predicate: returns the object to look at, or the reason to do nothing, from the event alone. Pure.
        other_events: as `predicate`, for events that are about no change of an object, such as the reply
            events of other steps; None ignores these.
        passed_on: returns the reply to an event of which another step has to know too, where the plan has
            no reply of its own; from the event alone. Pure. So the event has one delivery, not two.
        observe: reads that object and related ones live; returns the inputs of the plan.
        plan: decides from these inputs and the time. Pure.
        execute: carries out a plan as the step's field manager; returns the plan with the actions that
            succeeded.
        swept: returns the objects of a namespace that a sweep looks at; for the namespace "" those that are
            in none.
        permissions: what observing, executing and listing need.
        lists: the kinds that a sweep lists in each namespace, in this order. It plans from them, and runs the
            step only on objects that need a write; other kinds that the step observes are read one by one.
    """

    name: str
    predicate: Callable[[ResourceEvent], ObjectRef | NoOp]
    observe: Callable[[Cluster, ObjectRef], Any]
    plan: Callable[[Any, datetime], Decision]
    execute: Callable[[Cluster, Plan, str], Plan]
    swept: Callable[[Cluster, str], Iterable[ObjectRef]]
    permissions: Permissions = frozenset()
    lists: tuple[Listing, ...] = ()
    other_events: Callable[[OtherEvent], ObjectRef | NoOp] | None = None
    passed_on: Callable[[ResourceEvent], Reply | None] = lambda _event: None

    def subject_of(self, event: ResourceEvent | OtherEvent) -> ObjectRef | NoOp:
        """Return the object to look at for an event, or the reason to do nothing."""
        if isinstance(event, ResourceEvent):
            return self.predicate(event)
        if self.other_events is None:
            return NoOp(Reason.NOT_FOR_THIS_STEP, f"type {event.type}")
        return self.other_events(event)

    @property
    def all_permissions(self) -> Permissions:
        """The permissions of its service account, which are checked when the function starts."""
        return self.permissions | SWEEP

    @property
    def manager(self) -> str:
        """The step's field manager: `muster-create-workload`."""
        return f"muster-{self.name.replace('_', '-')}"

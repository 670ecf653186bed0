"""The definition of a step: predicate, observe, plan, execute, and the objects of its sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from muster.cluster.interface import Cluster
from muster.cluster.observe.list_cache import Listing
from muster.cluster.permissions import Permissions
from muster.events.model import OtherEvent, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import Decision, NoOp, Plan
from muster.policy.reasons import Reason


class SweptInputs(Protocol):
    """The inputs of a plan about one object, which a sweep has read already."""

    @property
    def subject(self) -> ObjectRef:
        """The object."""
        ...


Subject = ObjectRef | SweptInputs
"""An object that a step is run on, or the inputs about it that were read already."""


@dataclass(frozen=True)
class Step:
    """A reaction to events: one step is one function.

    Attributes:
        name: the folder, `create_workload`; with dashes the service, trigger, role and field manager.
        predicate: returns the object to look at, or the reason to do nothing, from the event alone. Pure.
        other_events: as `predicate`, for events that are about no change of an object, such as the reply
            events of other steps; None ignores these.
        observe: reads that object and related ones live; returns the inputs of the plan.
        plan: decides from these inputs and the time. Pure.
        execute: carries out a plan as the step's field manager; returns the plan with the actions that
            succeeded.
        responsible_for: returns the objects that a sweep runs the step on, or the inputs about them.
        permissions: the permissions of its service account; checked when the function starts.
        lists: the lists that a sweep reads, in this order, before it calls `responsible_for`.
        lists_tell_all: whether the lists contain everything that `observe` reads. Then a sweep plans from
            them, and runs the step only on objects that need a write; otherwise it runs the step on each.
    """

    name: str
    predicate: Callable[[ResourceEvent], ObjectRef | NoOp]
    observe: Callable[[Cluster, ObjectRef], Any]
    plan: Callable[[Any, datetime], Decision]
    execute: Callable[[Cluster, Plan, str], Plan]
    responsible_for: Callable[[Cluster], Iterable[Subject]]
    permissions: Permissions = frozenset()
    lists: tuple[Listing, ...] = ()
    lists_tell_all: bool = True
    other_events: Callable[[OtherEvent], ObjectRef | NoOp] | None = None

    def subject_of(self, event: ResourceEvent | OtherEvent) -> ObjectRef | NoOp:
        """Return the object to look at for an event, or the reason to do nothing.

        Raises:
            UnreadableEvent: another event lacks the data that the step reads.
            pydantic.ValidationError: the object in the event has a field of a wrong type.
        """
        if isinstance(event, ResourceEvent):
            return self.predicate(event)
        if self.other_events is None:
            return NoOp(Reason.NOT_FOR_THIS_STEP, f"type {event.type}")
        return self.other_events(event)

    @property
    def manager(self) -> str:
        """The step's field manager: `muster-create-workload`."""
        return f"muster-{self.name.replace('_', '-')}"

    def inputs(self, cluster: Cluster, subject: Subject) -> Any:
        """Return the inputs of the plan for a subject."""
        return self.observe(cluster, subject) if isinstance(subject, ObjectRef) else subject

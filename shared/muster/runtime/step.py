"""The definition of a step: predicate, observe, plan, execute, and what a sweep of it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from muster.cluster.interface import Cluster
from muster.cluster.list_cache import Listing
from muster.cluster.permissions import Permissions
from muster.events.model import ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import Decision, NoOp, Plan


class Observed(Protocol):
    """Inputs of a plan that a sweep has read already, about one object."""

    @property
    def subject(self) -> ObjectRef:
        """The object."""
        ...


Subject = ObjectRef | Observed
"""An object that a step is run on, or what was read of it already."""


@dataclass(frozen=True)
class Step:
    """One reaction to one kind of event.

    Attributes:
        name: the folder, `create_workload`; with dashes the service, trigger, role and field manager.
        predicate: from the event alone, the object to look at or the reason to do nothing. Pure.
        observe: reads that object and its neighbours, live; returns the inputs of the plan.
        plan: decides from these inputs and the time. Pure.
        execute: carries a plan out as the step's field manager; returns the plan with the actions that were
            really carried out.
        responsible_for: the objects that a sweep runs the step on, or what was read of them already.
        permissions: what its service account must be allowed; checked when the function starts.
        lists: what a sweep lists before it calls `responsible_for`, in this order.
        lists_tell_all: whether the lists have all that `observe` reads. Then a sweep decides from them, and
            runs the step only where there is something to do; otherwise it runs the step on each object.
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

    @property
    def manager(self) -> str:
        """Its field manager: `muster-create-workload`."""
        return f"muster-{self.name.replace('_', '-')}"

    def inputs(self, cluster: Cluster, subject: Subject) -> Any:
        """The inputs of the plan for a subject."""
        return self.observe(cluster, subject) if isinstance(subject, ObjectRef) else subject

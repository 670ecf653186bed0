"""What a function is: observe, plan, execute, and the events it reacts to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from muster.cluster.listed import Listing
from muster.cluster.permissions import Permissions
from muster.cluster.port import Cluster
from muster.events.model import ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import Decision, Nothing, Observed, Plan


@dataclass(frozen=True)
class Step:
    """One reaction to one kind of event.

    Attributes:
        name: the folder, `create_workload`; with dashes the service, trigger, role and field manager.
        subject: from the event alone, which object it is about or why there is nothing to do. Pure.
        observe: reads that object and its neighbours, live.
        plan: decides, from what was observed and the time. Pure.
        execute: carries a plan out under the step's field manager; what a refused action was replaced by
            comes back as the plan that was really carried out.
        responsible_for: the objects a sweep runs the step on; one that it has observed already comes so.
        permissions: what its service account must be allowed; asked for when the function starts, so that
            one that is missing is told before an event needs it.
        lists: what a sweep lists before it asks what the step is responsible for, in this order.
        lists_tell_all: whether the lists have all that `observe` reads. Then a sweep decides from them, and
            runs the step only where there is something to do. Else, and without lists, it runs the step on
            each object.
    """

    name: str
    subject: Callable[[ResourceEvent], ObjectRef | Nothing]
    observe: Callable[[Cluster, ObjectRef], Observed]
    plan: Callable[[Observed, datetime], Decision]
    execute: Callable[[Cluster, Plan, str], Plan]
    responsible_for: Callable[[Cluster], Iterable[ObjectRef | Observed]]
    permissions: Permissions = frozenset()
    lists: tuple[Listing, ...] = ()
    lists_tell_all: bool = True

    @property
    def manager(self) -> str:
        """Its field manager: `muster-create-workload`."""
        return f"muster-{self.name.replace('_', '-')}"

    def observed(self, cluster: Cluster, subject: ObjectRef | Observed) -> Observed:
        """What there is to know about an object that `responsible_for` named."""
        return subject if isinstance(subject, Observed) else self.observe(cluster, subject)

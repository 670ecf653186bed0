"""What the scheduler compares of the pods in one group: not the name of their PriorityClass but what it says.

Pods of one group, and the group at the root of theirs, need one value and one preemptionPolicy
(validatePodGroup in pkg/scheduler/schedule_one_podgroup.go, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from muster.objects.scheduling import PriorityClass

_DEFAULT = "PreemptLowerPriority"
NEVER = "Never"


@dataclass(frozen=True)
class Priority:
    """The priority that pods of a template will have; two are equal where the scheduler finds them so.

    Attributes:
        name: the PriorityClass in the template; "" where it names none.
        rank: value and preemptionPolicy of the class; its name where nobody has read it, or there is none.
    """

    name: str = field(compare=False)
    rank: tuple[int, str] | str

    @property
    def preemption_policy(self) -> str:
        """What the class says; "" where nobody has read it, or there is none."""
        return "" if isinstance(self.rank, str) else self.rank[1]

    def __str__(self) -> str:
        """The name, and in parentheses what it comes to."""
        name = self.name or "none"
        if isinstance(self.rank, str):
            return name
        value, preemption = self.rank
        return f"{name} ({value})" if preemption == _DEFAULT else f"{name} ({value}, {preemption})"


def priority_of(name: str, classes: Collection[PriorityClass]) -> Priority:
    """The priority of pods whose template has that priorityClassName.

    Args:
        name: "" takes the class that is the cluster's default; without one pods have priority 0.
        classes: the cluster's; empty where nobody has read them.
    """
    known = {one.metadata.name: (one.value, one.preemption_policy) for one in classes}
    if known and not name:
        defaults = [known[one.metadata.name] for one in classes if one.global_default]
        # The API refuses a second default; where two came at once the lower one counts (admission/priority).
        return Priority(name, min(defaults, default=(0, _DEFAULT)))
    return Priority(name, known.get(name, name))

"""Groups that hold their nodes while pods of another group cannot exist yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.policy.tree.groups import Group


@dataclass(frozen=True)
class Stage:
    """A group that keeps its nodes until a later one has run.

    Attributes:
        holds: the group whose pods are bound and run.
        waits: the group whose pods are created only when those are ready.
    """

    holds: str
    waits: str

    def __str__(self) -> str:
        return (
            f"group {self.holds} holds its nodes while group {self.waits} waits for it to be Ready: two such "
            "owners that do not both fit can block each other for ever; one group for both, without "
            "dependsOn, cannot"
        )


def holding_stages(tree: tuple[Group, ...]) -> Iterator[Stage]:
    """Yield the groups that run while a group of another gang waits for them to be Ready.

    JobSet creates a replicatedJob with `dependsOn: Ready`, or with `startupPolicy: InOrder`, once the ones
    before it are ready, and these keep running: shipped MPI runtimes start their launcher so. A gang of both
    is impossible (WaitsForItself). A dependency that is `Complete` holds nothing.
    """
    leaves = [leaf for root in tree for leaf in root.leaves()]
    group_at = {pod_set.index: leaf.name for leaf in leaves for pod_set in leaf.pod_sets}
    for late in leaves:
        waited = 0
        for pod_set in late.pod_sets:
            waited |= pod_set.waits_for & ~pod_set.ends_first
        holding = {name for index, name in group_at.items() if waited >> index & 1}
        yield from (Stage(name, late.name) for name in sorted(holding - {late.name}))

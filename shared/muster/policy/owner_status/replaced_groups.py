"""PodGroups and CompositePodGroups that are not, or not as, Muster created them.

Whoever may write groups can put another in place. Its pods may never be placed, and Muster does not change
a group that it did not create.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.objects.scheduling import CompositePodGroup, PodGroup, PodGroupTemplate
from muster.policy.group_labels import GroupInstance, belongs_to
from muster.policy.owner_status.conditions import Condition
from muster.policy.plans.manifests import FALLBACK
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers


@dataclass(frozen=True)
class _ExistingGroup:
    """A group under the name of one of the owner's.

    Attributes:
        group: as it is.
        members: the most pods, or child groups with pods, that it can have.
    """

    group: PodGroup | CompositePodGroup
    members: int

    @property
    def never_placed(self) -> str:
        """Why its pods are never placed; "" if its members can reach its minimum."""
        needed = self.group.spec.scheduling_policy.needs
        if needed <= max(self.members, 1):
            return ""
        count, members = "minCount", "pods"
        if isinstance(self.group, CompositePodGroup):
            count, members = "minGroupCount", "child groups"
        return f"{self.group.metadata.name} has {count} {needed} and {self.members} {members}"


def without_replaced_groups(resolved: ResolvedOwner, members: LiveMembers, ready: Condition) -> Condition:
    """The condition PodGroupsReady; False if a group was replaced by one that cannot stand for Muster's."""
    if not ready.true:
        return ready
    pod_groups = dict(_existing_pod_groups(resolved, members))
    existing = (*pod_groups.values(), *_existing_composites(resolved, members))
    foreign = [entry for entry in existing if not belongs_to(entry.group.metadata.labels, resolved.root.uid)]
    if foreign:
        return _with_foreign_groups(resolved, foreign, ready)
    workload = resolved.own or resolved.live.workload
    templates = {} if workload is None else {entry.name: entry for entry, _ in workload.hierarchy()}
    changed = [
        difference
        for instance, entry in pod_groups.items()
        if instance.group in templates and FALLBACK not in entry.group.metadata.annotations
        for difference in _differences(entry, templates[instance.group])
    ]
    if not changed:
        return ready
    message = f"not as Muster created them: {'; '.join(changed)}"
    return replace(ready, true=False, reason=Reason.NOT_AS_CREATED, message=message)


def _existing_pod_groups(
    resolved: ResolvedOwner, members: LiveMembers
) -> Iterator[tuple[GroupInstance, _ExistingGroup]]:
    """Yield the PodGroups of the owner's groups, as far as they exist."""
    groups = {group.metadata.name: group for group in members.groups}
    most = {(leaf.name, suffix): pods for leaf in resolved.leaves() for suffix, pods in leaf.sizes.items()}
    for instance, name in resolved.pod_groups():
        if name in groups:
            yield instance, _ExistingGroup(groups[name], most[instance])


def _existing_composites(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[_ExistingGroup]:
    """Yield the CompositePodGroups of the groups of a policy, as far as they exist."""
    composites = {group.metadata.name: group for group in members.composites}
    for group in resolved.groups.values():
        for suffix, copy in group.instances.items() if group.children else ():
            name = resolved.pod_sets.pod_group_name(group.name, suffix)
            if name in composites:
                yield _ExistingGroup(composites[name], copy.own_child_groups)


def _with_foreign_groups(
    resolved: ResolvedOwner, foreign: list[_ExistingGroup], ready: Condition
) -> Condition:
    """The condition with the groups that Muster did not create; False if one can never be placed.

    A group that a user created under the stamped name is adopted: its pods are placed as it says (KEP-5547).
    """
    names: dict[str, list[str]] = {}
    for entry in foreign:
        names.setdefault(f"{entry.group.kind}s", []).append(entry.group.metadata.name)
    named = "; ".join(f"{kind} {', '.join(of_kind)}" for kind, of_kind in names.items())
    message = f"not created by Muster for {resolved.root}: {named}"
    never = [entry.never_placed for entry in foreign if entry.never_placed]
    if not never:
        return replace(ready, message=f"{ready.message}; {message}")
    return replace(ready, true=False, reason=Reason.NOT_MUSTERS, message=f"{message}; {'; '.join(never)}")


def _differences(entry: _ExistingGroup, template: PodGroupTemplate) -> Iterator[str]:
    """What no step of Muster would write: another policy, or a minCount above its template and its pods."""
    name, policy = entry.group.metadata.name, entry.group.spec.scheduling_policy
    stored = template.scheduling_policy
    if (policy.gang is None) != (stored.gang is None):
        kinds = ("gang", "basic") if policy.gang is not None else ("basic", "gang")
        yield f"{name} is {kinds[0]}, its template {kinds[1]}"
    elif policy.min_count > max(stored.min_count, entry.members, 1):
        both = f"{name} has minCount {policy.min_count}, its template {stored.min_count}"
        yield f"{both}, and {entry.members} pods"

"""Find PodGroups and CompositePodGroups that Muster did not create, or that differ from what it created.

Whoever may write groups can put another in place. Its pods may never be placed, and Muster does not change
a group that it did not create.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from muster.objects.resources import COMPOSITE_POD_GROUPS
from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.policy.group_labels import belongs_to
from muster.policy.owner_status.conditions import Condition
from muster.policy.owner_status.timeout import groups_not_given_up
from muster.policy.plans.manifests import FALLBACK
from muster.policy.plans.wanted_groups import (
    ExistingGroups,
    WantedGroup,
    child_groups,
    existing_groups,
    wanted_groups,
)
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers
from muster.policy.tree.policy_tree import LEVELS


@dataclass(frozen=True)
class _ExistingGroup:
    """A group under the name of one of the owner's.

    Attributes:
        group: as it is.
        wanted: as it should be.
        members: the most pods, or child groups with pods, that it can have.
        has_root: whether the CompositePodGroups above it exist, up to one without a parent.
    """

    group: PodGroup | CompositePodGroup
    wanted: WantedGroup
    members: int
    has_root: bool

    @property
    def needs(self) -> int:
        """Its minCount or minGroupCount; 0 if it is basic."""
        return self.group.spec.scheduling_policy.needs

    @property
    def never_placed(self) -> str:
        """Why the scheduler can never place its pods; "" if it can."""
        group, name = self.group, self.group.metadata.name
        parent = group.spec.parent_composite_pod_group_name
        if not self.has_root:
            return f"{name} is below {parent}: a CompositePodGroup there does not exist or is below itself"
        if self.needs <= max(self.members, 1):
            return ""
        return f"{name} has {group.minimum_field} {self.needs} and {self.members} {group.member_kind}"


def without_replaced_groups(resolved: ResolvedOwner, members: LiveMembers, ready: Condition) -> Condition:
    """Return the condition PodGroupsReady; False if a group was replaced by one that is never placed."""
    if not ready.true:
        return ready
    existing = tuple(_existing_groups(resolved, members))
    foreign, changed = list[_ExistingGroup](), list[str]()
    gangs = groups_not_given_up(resolved, members.groups)
    for entry in existing:
        if not belongs_to(entry.group.metadata.labels, resolved.root.uid):
            foreign.append(entry)
        elif entry.group.metadata.name in gangs or not _is_fallback(entry):
            changed += _differences(entry)
    ready = _with_foreign_groups(resolved, foreign, ready) if foreign else ready
    if not (ready.true and changed):
        return ready
    message = f"not as Muster created them: {'; '.join(changed)}"
    return replace(ready, true=False, reason=Reason.NOT_AS_CREATED, message=message)


def _existing_groups(resolved: ResolvedOwner, members: LiveMembers) -> Iterator[_ExistingGroup]:
    """Yield the owner's groups as far as they exist; none while it has no Workload."""
    workload = resolved.own or resolved.live.workload
    if workload is None:
        return
    existing, wanted = existing_groups(members), tuple(wanted_groups(resolved, workload))
    children = child_groups(wanted, existing)
    for group in wanted:
        found = existing.get(group.key)
        if found is not None:
            most = children[group.name] if group.composite else group.pods
            yield _ExistingGroup(found, group, most, _has_root(found, existing))


def _has_root(group: PodGroup | CompositePodGroup, existing: ExistingGroups) -> bool:
    """Whether a group without a parent is above a group, within the levels of the API."""
    parent = group.spec.parent_composite_pod_group_name
    for _ in range(LEVELS):
        if not parent:
            return True
        above = existing.get((COMPOSITE_POD_GROUPS.kind, parent))
        if above is None:
            return False
        parent = above.spec.parent_composite_pod_group_name
    return False


def _is_fallback(entry: _ExistingGroup) -> bool:
    """Whether it is a fallback PodGroup, which has neither the policy nor the parent of its template."""
    return isinstance(entry.group, PodGroup) and FALLBACK in entry.group.metadata.annotations


def _with_foreign_groups(
    resolved: ResolvedOwner, foreign: list[_ExistingGroup], ready: Condition
) -> Condition:
    """Return the condition with the groups that Muster did not create; False if one can never be placed.

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


def _differences(entry: _ExistingGroup) -> Iterator[str]:
    """Yield each difference from its template: gang or basic, a too high minimum, another parent."""
    name, wanted, spec = entry.group.metadata.name, entry.wanted, entry.group.spec
    policy, stored = spec.scheduling_policy, wanted.template.scheduling_policy
    if (policy.gang is None) != (stored.gang is None):
        kinds = ("gang", "basic") if policy.gang is not None else ("basic", "gang")
        yield f"{name} is {kinds[0]}, its template {kinds[1]}"
    elif entry.needs > max(stored.needs, entry.members, 1):
        both = f"{name} has {entry.group.minimum_field} {entry.needs}, its template {stored.needs}"
        yield f"{both}, and {entry.members} {entry.group.member_kind}"
    if not wanted.is_below_parent(entry.group):
        parent = spec.parent_composite_pod_group_name or "no CompositePodGroup"
        yield f"{name} is below {parent}, its template below {wanted.parent or 'none'}"

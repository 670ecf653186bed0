"""PodGroups that are not, or not as, Muster created them.

Whoever may write PodGroups can put another in place. Its pods may never be placed, and Muster does not change
a group that it did not create.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.objects.scheduling import PodGroup, PodGroupTemplate
from muster.policy.group_labels import belongs_to
from muster.policy.owner_status.conditions import Condition
from muster.policy.plans.manifests import FALLBACK
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers


def without_replaced_groups(resolved: ResolvedOwner, members: LiveMembers, ready: Condition) -> Condition:
    """The condition PodGroupsReady; False if a group was replaced by one that cannot stand for Muster's."""
    if not ready.true:
        return ready
    existing = {group.metadata.name: group for group in members.groups}
    named = ((instance, existing.get(name)) for instance, name in resolved.pod_groups())
    wanted = [(instance, group) for instance, group in named if group is not None]
    most = {(leaf.name, suffix): pods for leaf in resolved.leaves() for suffix, pods in leaf.sizes.items()}
    foreign = [
        (group, most[instance])
        for instance, group in wanted
        if not belongs_to(group.metadata.labels, resolved.root.uid)
    ]
    if foreign:
        return _with_foreign_groups(resolved, foreign, ready)
    workload = resolved.own or resolved.live.workload
    templates = {} if workload is None else {entry.name: entry for entry, _ in workload.hierarchy()}
    changed = [
        difference
        for instance, group in wanted
        if instance.group in templates and FALLBACK not in group.metadata.annotations
        for difference in _differences(group, templates[instance.group], most[instance])
    ]
    if not changed:
        return ready
    message = f"not as Muster created them: {'; '.join(changed)}"
    return replace(ready, true=False, reason=Reason.NOT_AS_CREATED, message=message)


def _with_foreign_groups(
    resolved: ResolvedOwner, foreign: list[tuple[PodGroup, int]], ready: Condition
) -> Condition:
    """The condition with the groups that Muster did not create; False if one can never be placed.

    A group that a user created under the stamped name is adopted: its pods are placed as it says (KEP-5547).
    """
    names = ", ".join(group.metadata.name for group, _ in foreign)
    message = f"not created by Muster for {resolved.root}: PodGroups {names}"
    never = [
        f"{group.metadata.name} has minCount {group.spec.scheduling_policy.min_count} and {pods} pods"
        for group, pods in foreign
        if group.spec.scheduling_policy.min_count > max(pods, 1)
    ]
    if not never:
        return replace(ready, message=f"{ready.message}; {message}")
    return replace(ready, true=False, reason=Reason.NOT_MUSTERS, message=f"{message}; {'; '.join(never)}")


def _differences(group: PodGroup, template: PodGroupTemplate, pods: int) -> Iterator[str]:
    """What no step of Muster would write: another policy, or a minCount above its template and its pods."""
    name, policy, stored = group.metadata.name, group.spec.scheduling_policy, template.scheduling_policy
    if (policy.gang is None) != (stored.gang is None):
        kinds = ("gang", "basic") if policy.gang is not None else ("basic", "gang")
        yield f"{name} is {kinds[0]}, its template {kinds[1]}"
    elif policy.min_count > max(stored.min_count, pods, 1):
        yield f"{name} has minCount {policy.min_count}, its template {stored.min_count}, and {pods} pods"

"""minGroupCount follows the child groups that still have something to run.

The scheduler counts child groups that are ready, and one whose pods have all ended is not (gangscheduling.go,
Kubernetes v1.37.1): the replacement of a pod in another child would wait for it for ever, seen on the real
scheduler. A CompositePodGroup's spec is fixed, so one of another number takes its place; it has no
finalizer, what runs is not touched, and pods that wait are placed when it is there again. Whoever stops in
between leaves child groups without their parent, by which the next one knows what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from muster.objects.scheduling import (
    CompositePodGroup,
    CompositePodGroupTemplate,
    Gang,
    PodGroup,
    SchedulingPolicy,
    Workload,
)
from muster.policy import bodies
from muster.policy.groups import Group, Place, members_to_run, that_stay
from muster.policy.model import Action, Observed, Verb
from muster.policy.ownership import Considered


def quorum_groups(considered: Considered) -> Iterator[Group]:
    """The groups of groups that need a number of their children."""
    return (group for root in considered.tree for group in root.composites() if group.gang)


def wanted_quorums(observed: Observed, considered: Considered) -> dict[str, int]:
    """The minGroupCount each composite gang of the owner should have now, by its name.

    Down at once; up only while no pod below it that stays has a node, as after a restart, when all children
    count again.
    """
    there = {group.metadata.name: group for group in observed.composites}
    needed = members_to_run(considered.gang, observed.jobs, observed.pods)
    bound = {pod.pod_group_name for pod in that_stay(observed.jobs, observed.pods) if pod.bound}
    targets = {}
    for group in quorum_groups(considered):
        name = considered.gang.pod_group_name(group.name, "")
        current = there[name].spec.scheduling_policy.needs if name in there else None
        target = max(1, min(group.template_min_count, _alive(group, needed)))
        if current is not None and target > current and bound & set(_names_below(considered, group)):
            target = current
        targets[name] = target
    return targets


def replaced_composites(
    observed: Observed, considered: Considered, workload: Workload, targets: dict[str, int]
) -> Iterator[Action]:
    """Composites of the right number in the place of those that have another one, or that were taken away.

    The template is right by then, so that whoever makes a missing one in between makes it right.
    """
    there = {group.metadata.name: group for group in observed.composites}
    parents = {group.spec.parent_composite_pod_group_name for group in observed.groups}
    parents |= {group.spec.parent_composite_pod_group_name for group in observed.composites}
    gang = considered.gang
    groups = {group.name: group for group in quorum_groups(considered)}
    for template, above in workload.hierarchy():
        if not isinstance(template, CompositePodGroupTemplate) or template.name not in groups:
            continue
        name = gang.pod_group_name(template.name, "")
        old = there.get(name)
        if old is not None and is_of_wrong_size(old, targets[name]):
            yield Action(Verb.DELETE, replace(old.ref, uid=old.metadata.uid))
        elif old is not None or name not in parents:
            continue
        one_class = old.spec.priority_class_name if old else groups[template.name].priority_class_name
        yield bodies.create_group(
            gang.root,
            workload,
            name,
            template,
            policy=SchedulingPolicy(gang=Gang(min_group_count=targets[name])),
            priority_class=one_class,
            parent=gang.pod_group_name(above, "") if above else "",
        )


def is_of_wrong_size(group: PodGroup | CompositePodGroup, wanted: int) -> bool:
    """Whether it is a gang of Muster's of another number than the wanted one, which is 0 where none is."""
    stays = group.being_deleted or not bodies.is_musters(group.metadata.labels)
    return not stays and wanted > 0 and group.spec.scheduling_policy.needs not in {0, wanted}


def _alive(group: Group, needed: Counter[Place]) -> int:
    """How many child groups still have pods to run."""
    return sum(
        bool(_alive(child, needed))
        if child.children
        else sum(needed[child.name, suffix] > 0 for suffix in child.sizes)
        for child in group.children
    )


def _names_below(considered: Considered, group: Group) -> Iterator[str]:
    for leaf in group.leaves():
        for suffix in leaf.sizes:
            yield considered.gang.pod_group_name(leaf.name, suffix)

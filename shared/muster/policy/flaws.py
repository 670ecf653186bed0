"""What makes a tree of groups impossible, seen before any of it is made."""

from __future__ import annotations

from muster.policy import marks
from muster.policy.groups import GivenUp, Group
from muster.policy.kinds import Gang, PodSet
from muster.policy.reasons import Reason
from muster.policy.startup import Stuck, seats_of, stuck

TEMPLATE_LIMIT = 8
"""Templates in one list of a Workload (scheduling/v1beta1/types.go, Kubernetes v1.37.1)."""

GROUP_LIMIT = 10_000
"""PodGroups of one owner. Marks can ask for thousands of millions, which nobody could hold in memory."""


def crowd_of(gang: Gang) -> GivenUp | None:
    """Why an owner's marks make more PodGroups than Muster makes for one owner, or None; by counts alone."""
    # The PodGroups of a group are numbered from 0: templates that share the group share them too.
    most: dict[str, tuple[int, PodSet]] = {}
    for pod_set in gang.pod_sets:
        groups = _numbered(pod_set)
        if pod_set.mark and groups > most.get(pod_set.mark.group, (0, pod_set))[0]:
            most[pod_set.mark.group] = groups, pod_set
    total = sum(groups for groups, _ in most.values())
    if total <= GROUP_LIMIT:
        return None
    groups, pod_set = max(most.values(), key=lambda one: one[0])
    per_job = pod_set.mark is not None and pod_set.mark.per_job
    label = marks.GROUP_PER if per_job else marks.GROUP_SIZE
    counted = f"{groups} of {total}" if groups < total else str(total)
    message = f"{pod_set.path}.metadata.labels[{label}]: makes {counted} PodGroups, but one owner can have"
    return GivenUp(Reason.TOO_MANY_GROUPS, f"{message} {GROUP_LIMIT}")


def _numbered(pod_set: PodSet) -> int:
    """How many PodGroups a mark makes of its group, one for each Job or block; else at most one."""
    mark, spec = pod_set.mark, pod_set.spec
    if mark is not None and mark.per_job:
        return pod_set.jobs
    if mark is None or not (mark.size and spec.indexed):
        return 1
    indexes = spec.parallelism if spec.completions is None else spec.completions
    return -(-indexes // mark.size)


def flaw_of(tree: tuple[Group, ...], *, kept: bool = False) -> GivenUp | None:
    """What makes a tree impossible, or None.

    Args:
        tree: the groups of an owner.
        kept: whether they exist already: then the priorities of their pods were judged when they were made.
    """
    leaves = [leaf for root in tree for leaf in root.leaves()]
    if len(tree) > TEMPLATE_LIMIT:
        return GivenUp(
            Reason.TOO_MANY_GROUPS,
            f"{len(tree)} groups ({', '.join(root.name for root in tree)}), "
            f"but a Workload has room for {TEMPLATE_LIMIT}",
        )
    flaw = next(filter(None, (_flaw_of_leaf(leaf, kept=kept) for leaf in leaves)), None)
    if flaw is not None:
        return flaw
    blocked = stuck(tree)
    return None if blocked is None else GivenUp(Reason.WAITS_FOR_ITSELF, _told(blocked), blocked.group.name)


def _told(blocked: Stuck) -> str:
    what = "child groups" if blocked.group.children else "pods"
    return (
        f"group {blocked.group.name}: needs {blocked.needed} {what} and has {blocked.at_once} "
        f"before {blocked.late} starts, which waits for it"
    )


def _flaw_of_leaf(leaf: Group, *, kept: bool) -> GivenUp | None:
    priorities = None if kept else _priorities(leaf)
    return _waits_for_itself(leaf) or _exclusive(leaf) or priorities or _schedulers(leaf)


def _waits_for_itself(leaf: Group) -> GivenUp | None:
    names = {pod_set.replicated_job for pod_set in leaf.pod_sets}
    for pod_set in leaf.pod_sets if leaf.gang else ():
        waited = ", ".join(sorted(pod_set.waits_for & names))
        if waited:
            return GivenUp(
                Reason.WAITS_FOR_ITSELF,
                f"group {leaf.name}: {pod_set.replicated_job} starts after {waited}, "
                f"so a gang of {_paths(leaf.pod_sets)} can never be placed together",
                leaf.name,
            )
    return None


def _exclusive(leaf: Group) -> GivenUp | None:
    """Followers in one gang with their own index 0, without which there are fewer than minCount pods."""
    for members in seats_of(leaf) if leaf.gang else ():
        led = {one.path for one in members if one.leads}
        held_back = [one for one in members if one.follow and one.path in led]
        pods = sum(one.pods for one in members)
        needed = min(leaf.template_min_count, pods)
        if held_back and needed > pods - sum(one.pods for one in held_back):
            return GivenUp(
                Reason.EXCLUSIVE_PLACEMENT,
                f"group {leaf.name}: with exclusive placement the pods of {held_back[0].path} wait for "
                f"index 0, so a gang of {needed} can never be placed together",
                leaf.name,
            )
    return None


def _priorities(leaf: Group) -> GivenUp | None:
    """The scheduler places no pod of a PodGroup, a basic one included, whose pods differ in priority.

    All PodGroups of a template have its one preemptionPolicy, which has to be that of their pods.
    """
    if len({one.priority for one in leaf.pod_sets}) == 1:
        return None
    for suffix in leaf.sizes:
        together = leaf.pod_sets_at(suffix)
        if len({one.priority for one in together}) > 1:
            found = ", ".join(sorted({str(one.priority) for one in together}))
            message = f"group {leaf.name}: {_paths(together)} have priorityClassName {found}"
            return GivenUp(Reason.PRIORITIES_DIFFER, message, leaf.name)
    if len({leaf.never_preempts_at(suffix) for suffix in leaf.sizes}) > 1:
        message = f"group {leaf.name}: pods of {_paths(leaf.pod_sets)} differ in preemptionPolicy"
        return GivenUp(Reason.PRIORITIES_DIFFER, message, leaf.name)
    return None


def _schedulers(leaf: Group) -> GivenUp | None:
    if len({one.template.spec.scheduler_name for one in leaf.pod_sets}) == 1:
        return None
    for suffix in leaf.sizes:
        together = leaf.pod_sets_at(suffix)
        names = {one.template.spec.scheduler_name for one in together}
        if len(names) > 1:
            message = f"group {leaf.name}: {_paths(together)} have schedulerName {', '.join(sorted(names))}"
            return GivenUp(Reason.SCHEDULERS_DIFFER, message, leaf.name)
    return None


def _paths(pod_sets: tuple[PodSet, ...]) -> str:
    return ", ".join(pod_set.path for pod_set in pod_sets)

"""What `muster lint`, `explain` and `status` say of owners that are no gang, or several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from muster.cluster.errors import Forbidden
from muster.cluster.interface import Cluster
from muster.objects.resources import NAMESPACES
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import NoOp
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.schema import WorkloadPolicy
from muster.policy.tree.groups import Group

CREATED_BEFORE = "it was created before its namespace had the label, or without mark-jobs; create it again"
"""Why a job of an opted-in namespace has no group labels."""


def why_unmarked(cluster: Cluster, namespace: str) -> str:
    """Return why mark-jobs does not act in a namespace; "" if it does."""
    try:
        body = cluster.get(NAMESPACES, namespace) or {"metadata": {}}
    except Forbidden:
        return "the labels of the namespace could not be read"
    value = (body["metadata"].get("labels") or {}).get(NAMESPACE_SWITCH)
    has = "no such label" if value is None else f"the value `{value}`"
    needed = f"mark-jobs acts in namespaces with the label {NAMESPACE_SWITCH}: enabled"
    return "" if value == "enabled" else f"{needed}; this one has {has}"


def gang_shaped(owner: OwnerObject) -> bool:
    """Whether mark-jobs labels the pods of an owner: of a JobSet, or of a Job whose pods all run at once."""
    if not isinstance(owner, Job):
        return True
    spec = owner.spec
    return owner.metadata.controller is None and spec.indexed and 1 < spec.parallelism == spec.completions


def why_not_marked(cluster: Cluster, live: LiveOwner, skipped: NoOp) -> Iterator[str]:
    """Yield why mark-jobs leaves an owner without group labels (eventing/admission/mark-jobs.yaml)."""
    owner = live.owner
    if skipped.reason != Reason.NOT_MARKED or owner is None:
        return
    unmarked = why_unmarked(cluster, owner.metadata.namespace)
    labels = owner.spec.template.metadata.labels if isinstance(owner, Job) else {}
    if unmarked:
        yield unmarked
    elif live.unmarked or (isinstance(owner, Job) and GROUP not in labels and gang_shaped(owner)):
        yield CREATED_BEFORE
    elif not isinstance(owner, Job) or GROUP in labels:
        yield f"the label {GROUP} of its pod templates is `none`, or no DNS label"
    else:
        spec, controller = owner.spec, owner.metadata.controller
        made_by = f"owner {controller.kind} {controller.name}" if controller else "no owner"
        completions = "unset" if spec.completions is None else spec.completions
        yield (
            "mark-jobs labels new Indexed Jobs without an owner, with parallelism above 1 and as many "
            f"completions; this one has {made_by}, completionMode {spec.completion_mode}, parallelism "
            f"{spec.parallelism}, completions {completions}; for a group create it with the label {GROUP} "
            "in its pod template"
        )


def separate_gangs(resolved: ResolvedOwner) -> Iterator[str]:
    """Yield what can happen to gangs that no policy asked for, if some of them start together."""
    policy = resolved.policy.workload or WorkloadPolicy()
    gangs = [group for group in resolved.tree if group.gang and group.has_pods]
    if resolved.own is not None or policy.groups or all(_one_waits(*pair) for pair in combinations(gangs, 2)):
        return
    names = " and ".join(group.name for group in gangs)
    yield (
        f"{names} are {len(gangs)} separate gangs: one may run without the other, and two such owners that "
        "do not both fit can block each other for ever; for a single gang give their pod templates the same "
        f"label {GROUP}, or a policy with a group of groups"
    )


def _one_waits(one: Group, other: Group) -> bool:
    """Whether the pods of one of two gangs do not exist before those of the other."""
    pairs = [(a, b) for a in one.pod_sets for b in other.pod_sets]
    return any(a.waits_for >> b.index & 1 or b.waits_for >> a.index & 1 for a, b in pairs)

"""What `muster lint` and `muster explain` say of owners that are no gang, or several."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from muster.cluster.interface import Cluster
from muster.objects.resources import NAMESPACES
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import NoOp
from muster.policy.owners.job import Job
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.schema import WorkloadPolicy
from muster.policy.tree.groups import Group


def is_opted_in(cluster: Cluster, namespace: str) -> bool:
    """Whether mark-jobs acts in a namespace."""
    body = cluster.get(NAMESPACES, namespace) or {"metadata": {}}
    return (body["metadata"].get("labels") or {}).get(NAMESPACE_SWITCH) == "enabled"


def why_not_marked(cluster: Cluster, live: LiveOwner, skipped: NoOp) -> Iterator[str]:
    """Yield why mark-jobs leaves a plain Job without a group label (eventing/admission/mark-jobs.yaml)."""
    job = live.owner
    if skipped.reason != Reason.NOT_MARKED or not isinstance(job, Job):
        return
    if not is_opted_in(cluster, job.metadata.namespace):
        yield f"mark-jobs does not act in namespaces without the label {NAMESPACE_SWITCH}: enabled"
        return
    spec = job.spec
    if not spec.indexed or spec.parallelism <= 1 or spec.completions != spec.parallelism:
        completions = "unset" if spec.completions is None else spec.completions
        yield (
            "mark-jobs labels new Indexed Jobs with parallelism above 1 and as many completions; this one "
            f"has completionMode {spec.completion_mode}, parallelism {spec.parallelism}, "
            f"completions {completions}; to get a group, create it with the label {GROUP} in its pod template"
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

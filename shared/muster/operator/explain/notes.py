"""Notes of `muster explain` on an owner: guarantees that its groups lack, and why it has none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import NoOp
from muster.policy.owners.job import Job
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner, ResolvedOwner
from muster.policy.sources.schema import WorkloadPolicy


def notes_on_groups(resolved: ResolvedOwner) -> Iterator[str]:
    """Yield a line for each way in which the groups of an owner may be less than a user expects."""
    if resolved.failure is not None:
        if resolved.failure.reason == Reason.PRIORITIES_DIFFER:
            yield "the scheduler places no pods of different priority in one group, not even one by one"
        return
    stages = [f"{Reason.HOLDS_WHILE_WAITING}: {stage}" for stage in resolved.stages]
    gangs = [group.name for group in resolved.tree if group.gang]
    by_default = resolved.own is None and not (resolved.policy.workload or WorkloadPolicy()).groups
    yield from stages
    if len(gangs) > 1 and by_default and not stages:
        yield (
            f"{' and '.join(gangs)} are {len(gangs)} separate gangs: one may run without the other; for a "
            f"single gang give their pod templates the same label {GROUP}, or a policy with a group of groups"
        )
    policy = resolved.policy.workload
    if policy is not None and policy.scheduling_timeout_seconds is not None:
        then = {
            "Report": "a condition says so",
            "Basic": "its pods run one by one",
            "Suspend": "it is suspended",
        }
        seconds = policy.scheduling_timeout_seconds
        yield f"a gang may wait {seconds} s for room; then {then[policy.on_timeout]}"
    grows = [group.name for group in resolved.tree if group.gang and group.template_min_count == 1]
    if grows and isinstance(resolved.owner, Job):
        yield f"{grows[0]} is a gang of 1: pods that are added later are scheduled as they come, not together"


def notes_on_skipped(live: LiveOwner, skipped: NoOp, namespace_labels: Mapping[str, str]) -> Iterator[str]:
    """Yield why mark-jobs leaves a plain Job without a group label (eventing/admission/mark-jobs.yaml)."""
    job = live.owner
    if skipped.reason != Reason.NOT_MARKED or not isinstance(job, Job):
        return
    if namespace_labels.get(NAMESPACE_SWITCH) != "enabled":
        yield f"mark-jobs does not act in namespaces without the label {NAMESPACE_SWITCH}: enabled"
        return
    spec = job.spec
    if not spec.indexed or spec.parallelism <= 1 or spec.completions != spec.parallelism:
        yield (
            "mark-jobs labels Indexed Jobs with parallelism above 1 and as many completions; this one has "
            f"completionMode {spec.completion_mode}, parallelism {spec.parallelism}, completions "
            f"{'unset' if spec.completions is None else spec.completions}"
        )
        yield (
            "a Job gets its label when it is created: scaled up later, it still has no group; "
            f"to get one, create it with the label {GROUP} in its pod template"
        )

"""restart_gang: a gang that lost members for which there is no room waits again as a whole, or its Jobs fail.

The pods that replace evicted ones are placed like those of any restart: the nodes that the old ones leave,
and the old ones while they last, are fewer than minCount, so none is placed before there is room for all.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from muster.objects.meta import time_text
from muster.objects.pods import Pod
from muster.objects.text import counted
from muster.policy.groups.gate_release import placed_together, root_of
from muster.policy.groups.manifests import create_event
from muster.policy.groups.wanted_groups import ShortGang, short_gangs
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Verb
from muster.policy.owners.job import FAILURE_TARGET, Job
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups
from muster.policy.status.group_status import refusal_of_pod
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-restart-gang"


def plan_restart(inputs: OwnerGroups, now: datetime) -> Decision:
    """Evict what is left of an owner's gangs that lost members for too long, or fail its Jobs."""
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return resolved
    root, policy = resolved.root, resolved.policy.workload
    if policy.on_members_lost == "Report" or resolved.suspended:
        return NoOp(Reason.UP_TO_DATE, f"{root}: onMembersLost is Report, or it is suspended")
    limit = timedelta(seconds=policy.members_lost_seconds)
    times = ((gang, _broken_since(gang)) for gang in short_gangs(resolved, members))
    gangs = [gang for gang, since in times if since is not None and now - since >= limit]
    pods = _pods_of(members, gangs)
    left = Counter(pod.metadata.controller.uid for pod in pods if pod.metadata.controller)
    jobs = [job for job in members.jobs if left[job.metadata.uid] and not job.finished]
    if not jobs:
        return NoOp(Reason.UP_TO_DATE, f"no gang of {root} has lacked members for so long")
    lost = ", ".join(f"{gang.name}: {gang.bound} of {counted(gang.needed, 'pod')} bound" for gang in gangs)
    lost += f" for more than {policy.members_lost_seconds} s"
    if policy.on_members_lost == "Fail":
        message = f"{lost}; its Jobs fail"
        actions = [_fail(job, message, now) for job in jobs]
    else:
        for job in jobs:
            survives = job.spec.survives
            if survives is not None and job.status.failed + left[job.metadata.uid] > survives:
                message = f"{lost}; to evict the others would end {job.ref}: its backoffLimit is {survives}"
                return NoOp(Reason.ENDS_WHEN_EVICTED, message)
        message = f"{lost}; {counted(len(pods), 'pod')} evicted, to be placed again with the others"
        actions = list(map(_evict, pods))
    event = create_event(root, COMPONENT, Reason.MEMBERS_LOST, message, now)
    return Plan(Reason.MEMBERS_LOST, message, (*actions, event))


def _broken_since(gang: ShortGang) -> datetime | None:
    """When a gang that was placed lost a member for which the scheduler found no room; None if it did not.

    The time begins again when a pod of it is bound, as those of a gang that is just being placed are. Of an
    elastic gang the first that wait are those above minCount, which may always wait.
    """
    bound = [pod for pod in gang.pods if pod.bound]
    refused = sorted(at for pod in gang.pods if refusal_of_pod(pod) and (at := pod.metadata.created_at))
    above_minimum = max(0, len(gang.pods) - gang.needed)
    if not (gang.group.placed and bound) or len(refused) <= above_minimum:
        return None
    times = (refused[above_minimum], gang.group.placed_at, *(pod.bound_at for pod in bound))
    return max(at for at in times if at is not None)


def _pods_of(members: LiveMembers, gangs: list[ShortGang]) -> list[Pod]:
    """Return the bound pods of gangs, and of all that is placed together with them."""
    groups = set[str]()
    for group in (gang.group for gang in gangs):
        whole = root_of(members, group).spec.scheduling_policy.gang is not None
        groups |= {one.metadata.name for one in (placed_together(members, group) if whole else (group,))}
    return [pod for pod in members.staying if pod.bound and pod.pod_group_name in groups]


def _evict(pod: Pod) -> Action:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.metadata.uid}},
    }
    return Action(Verb.CREATE, pod.ref, body, subresource="eviction")


def _fail(job: Job, message: str, now: datetime) -> Action:
    at = time_text(now)
    why = {
        "reason": str(Reason.MEMBERS_LOST),
        "message": message,
        "lastProbeTime": at,
        "lastTransitionTime": at,
    }
    body = {
        "metadata": {"resourceVersion": job.metadata.resource_version},
        "status": {"conditions": [*job.status.conditions, {"type": FAILURE_TARGET, "status": "True", **why}]},
    }
    return Action(Verb.PATCH, job.ref, body, patch=PatchType.MERGE, subresource="status")

"""restart_gang: a gang that lost members for which there is no room waits again as a whole, or its Jobs fail.

Evicted pods have replacements, the first of which is gated: as after any restart, patch_pods lets the gang go
once all are there, and the scheduler places all of them or none.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from muster.objects.meta import turned_at
from muster.objects.pods import Pod
from muster.objects.text import counted
from muster.policy.group_labels import completion_index
from muster.policy.groups.gate_release import placed_together, root_of
from muster.policy.groups.manifests import create_event
from muster.policy.groups.wanted_groups import ShortGang, short_gangs
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Verb
from muster.policy.owners.job import FAILURE_TARGET, Job
from muster.policy.reasons import Reason
from muster.policy.resolve import OwnerGroups, ResolvedOwner
from muster.policy.status.conditions import SCHEDULED, condition_type
from muster.policy.status.group_status import refusal_of_pod
from muster.policy.tree.members import LiveMembers

COMPONENT = "muster-restart-gang"


def plan_restart(inputs: OwnerGroups, now: datetime) -> Decision:
    """Evict what is left of an owner's gangs that lost members for too long, or fail its Jobs."""
    resolved, members = inputs.resolved, inputs.members
    if isinstance(resolved, NoOp):
        return resolved
    root, policy = resolved.root, resolved.policy.workload
    if policy is None or policy.on_members_lost == "Report" or resolved.suspended:
        return NoOp(Reason.UP_TO_DATE, f"{root}: onMembersLost is Report, or it is suspended")
    limit = timedelta(seconds=policy.members_lost_seconds)
    times = ((gang, _broken_since(resolved, gang)) for gang in short_gangs(resolved, members))
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
    event = create_event(
        root, component=COMPONENT, warning=True, reason=Reason.MEMBERS_LOST, message=message, now=now
    )
    return Plan(Reason.MEMBERS_LOST, message, (*actions, event))


def _broken_since(resolved: ResolvedOwner, gang: ShortGang) -> datetime | None:
    """When a gang that was placed lost a member for which there is no room; None if it did not.

    The time begins again when a pod of it is bound, as those of a gang that is just being placed are. Where
    pods were never made, as above a quota, the owner's condition tells the time.
    """
    bound = [pod for pod in gang.pods if pod.bound]
    above_minimum = len(gang.pods) - gang.needed
    refused = any(map(refusal_of_pod, gang.pods))
    if not (gang.group.placed and bound and (above_minimum < 0 or refused)):
        return None
    lost_at = turned_at(resolved.owner.status.conditions, condition_type(resolved.owner, SCHEDULED), "False")
    waiting = sorted(at for pod in gang.pods if not pod.bound and (at := pod.metadata.created_at))
    if waiting:  # an elastic gang's first ones are those above minCount, which may always wait
        lost_at = waiting[min(max(above_minimum, 0), len(waiting) - 1)]
    times = (lost_at, gang.group.placed_at, *(pod.bound_at for pod in bound))
    return max(at for at in times if at is not None) if lost_at else None


def _pods_of(members: LiveMembers, gangs: list[ShortGang]) -> list[Pod]:
    """Return the bound pods of gangs, and of all that is placed together with them, lowest indexes first.

    The replacement of the first is gated and holds the group, so that pod goes even if it only waits.
    """
    groups = set[str]()
    for group in (gang.group for gang in gangs):
        whole = root_of(members.composites, group).spec.scheduling_policy.gang is not None
        groups |= {one.metadata.name for one in (placed_together(members, group) if whole else (group,))}
    found = [pod for pod in members.staying if pod.pod_group_name in groups]
    found.sort(key=lambda pod: (completion_index(pod.metadata.labels), pod.metadata.name))
    return [pod for place, pod in enumerate(found) if pod.bound or (place == 0 and not pod.gates)]


def _evict(pod: Pod) -> Action:
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.metadata.name, "namespace": pod.metadata.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.metadata.uid}},
    }
    return Action(Verb.CREATE, pod.ref, body, subresource="eviction")


def _fail(job: Job, message: str, now: datetime) -> Action:
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
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

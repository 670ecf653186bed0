"""emit_conditions: what the conditions of an owner say of its groups and pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.objects.resources import SchedulingApi
from muster.objects.scheduling import ManagedPodGroup
from muster.policy.groups.manifests import FALLBACK
from muster.policy.plans.emit_conditions import PlacedInputs, plan_conditions
from muster.policy.status.owner_status import placed_status
from tests.support import builders as b
from tests.support.builders import Object
from tests.support.conditions import (
    FREE,
    NAME,
    NO_ROOM,
    PLACED,
    RUNNING,
    planned,
    planned_conditions,
    refused,
)
from tests.support.messages import mentions
from tests.support.planning import Observed

NODES = "0/3 nodes are available"
UNFIT = b.with_condition("PodScheduled", "False", "Unschedulable", NODES)
EVICTION = "preempted by a pod of higher priority"
EVICTED = b.with_condition("DisruptionTarget", "True", "PreemptionByScheduler", EVICTION)


def _since(second: int, kind: str, status: str = "True", reason: str = "") -> Any:
    """A condition that an object has since this second."""
    since = f"2026-11-21T07:00:{second:02}Z"
    condition = {"type": kind, "status": status, "lastTransitionTime": since}
    return b.with_status(conditions=[condition | {"reason": reason, "message": NODES}])


def _placed(at: int, *, replacement_refused: int) -> Observed:
    """A gang of two, one pod bound when it was placed, the other refused at another second."""
    group = b.a_pod_group(NAME, _since(at, "PodGroupInitiallyScheduled"))
    first = b.a_pod(None, 0, b.bound, _since(at, "PodScheduled"))
    second = b.a_pod(
        None, 1, b.gated(), _since(replacement_refused, "PodScheduled", "False", "Unschedulable")
    )
    return b.observed(groups=[group], pods=[first, second])


def _placed_with(*pods: Object, owner: Object | None = None, failed_create: str = "") -> Observed:
    return b.observed(owner, groups=[PLACED], pods=pods, failed_create=failed_create)


LOST = b.with_status(failed=1)
SUSPENDED = b.a_job(LOST, b.with_spec(suspend=True))
UNFIT_POD = b.a_pod(None, 1, b.gated(), UNFIT)
GOING = b.a_pod(None, 1, b.bound, EVICTED, b.being_deleted)
GROUP_REFUSED = b.observed(groups=[refused("Unschedulable", NO_ROOM)], pods=[RUNNING[0], FREE[1]])
NOT_CREATED = _placed_with(b.a_pod(None, 0), failed_create="exceeded quota")


@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        (b.observed(groups=[refused("Odd", "")], pods=FREE), "Unschedulable", ("Odd",)),
        # A replacement finds no room while the group still says it was placed.
        (_placed_with(RUNNING[0], UNFIT_POD), "Unschedulable", (NODES,)),
        # The group's refusal is over: a pod is bound; the pod's refusal is over: the group was placed since.
        (GROUP_REFUSED, "WaitingForScheduler", (1, 2)),
        (_placed(9, replacement_refused=3), "WaitingForScheduler", (1, 2)),
        (_placed(1, replacement_refused=3), "Unschedulable", (NODES,)),
        (NOT_CREATED, "SchedulingGated", ("1 of 2 pods exist", "exceeded quota")),
        # A member was lost: its Job counts it as failed, or does not say so yet; a suspended Job lost none.
        (_placed_with(RUNNING[0], owner=b.a_job(LOST)), "MembersLost", (1, 2)),
        (_placed_with(RUNNING[0], GOING), "MembersLost", (1, 2, EVICTION)),
        (_placed_with(owner=SUSPENDED), "WaitingForPods", (0, 2)),
    ],
)
def test_why_a_group_waits(given: Observed, reason: str, facts: tuple[object, ...]) -> None:
    """The message names the group, and quotes what others say of it."""
    *condition, message = planned_conditions(given)["PodGroupsScheduled"]
    assert condition == ["False", reason]
    assert mentions(message, NAME, *facts)


@pytest.mark.parametrize(
    ("failed", "created", "pod_reason", "again"),
    [
        (1, "07:59:58", "", True),
        (1, "07:59:54", "", False),
        (1, "07:59:58", "Unschedulable", False),
        (0, "07:59:58", "", False),
    ],
)
def test_a_new_replacement_is_checked_again_until_the_scheduler_has_answered(
    failed: int, created: str, pod_reason: str, again: bool
) -> None:
    """Its group keeps its condition, and its Job does not count bound pods, so no event follows."""
    replacement = copy.deepcopy(FREE[1])
    replacement["metadata"]["creationTimestamp"] = f"2026-11-21T{created}Z"
    if pod_reason:
        b.with_condition("PodScheduled", "False", pod_reason, NO_ROOM)(replacement)
    owner = b.a_job(b.with_status(failed=failed))
    assert planned(_placed_with(RUNNING[0], replacement, owner=owner)).requeue == again


TRIO = [b.a_pod(None, index, b.bound) for index in range(3)]
OF_136: dict[str, Any] = {"groups": [PLACED], "scheduling": SchedulingApi("v1alpha2", composites=False)}
ONE_DONE = b.a_job(b.with_status(completedIndexes="0"))


def _foreign(min_count: int = 2, workload: str = "") -> Observed:
    """The gang's group, which a user created under its name."""
    stranger = b.labelled({"app.kubernetes.io/managed-by": "someone", "muster.dev/owner-uid": ""})
    of = b.with_spec(workloadRef={"workloadName": workload, "templateName": "main"} if workload else None)
    group = b.a_pod_group(NAME, stranger, of, min_count=min_count)
    return b.observed(workload=b.a_workload(), groups=[group], pods=FREE)


def _fallback(text: str) -> Observed:
    return b.observed(groups=[b.a_pod_group(NAME, b.annotated({FALLBACK: text}))], pods=FREE)


READY, FIXED = "PodGroupsReady", "GangSizeFixed"
SHRUNK = b.observed(ONE_DONE, pods=[FREE[1]], **OF_136)
GROWN = b.observed(b.a_job(pods=3), workload=b.a_workload(), pods=TRIO, **OF_136)
REFUSED_BY_API = _fallback("RefusedByApi: no such: class")


@pytest.mark.parametrize(
    ("given", "condition", "expected", "facts"),
    [
        (SHRUNK, "PodGroupsScheduled", ("False", FIXED), ("v1alpha2", 2, 1)),
        (GROWN, READY, ("True", FIXED), ("v1alpha2", 2, 3)),
        (_foreign(), READY, ("True", "PodGroupsExist"), ("Job team-a/llama", NAME)),
        (_foreign(workload="llama-86f65b7bb7"), READY, ("True", "PodGroupsExist"), (NAME,)),
        (_foreign(3), READY, ("False", "NotMusters"), (NAME, 3, 2)),
        (_foreign(workload="theirs"), READY, ("False", "NotMusters"), (NAME, "theirs", "llama-86f65b7bb7")),
        (REFUSED_BY_API, READY, ("False", "RefusedByApi"), (NAME, "no such: class")),
        (_fallback("whatever"), READY, ("False", "NotMusters"), (NAME,)),
    ],
)
def test_groups_that_are_not_as_wanted(
    given: Observed, condition: str, expected: tuple[str, str], facts: tuple[object, ...]
) -> None:
    """The condition says what the scheduler will make of them."""
    status, reason, message = planned_conditions(given)[condition]
    assert (status, reason) == expected
    assert mentions(message, *facts)


def test_placed_groups_alone_say_what_groups_and_pods_say() -> None:
    """Else each sweep would write the conditions anew. A group that somebody resized does not tell enough."""
    plain: Object = {"annotations": {"muster.dev/groups": "1"}, "managedFields": [{"manager": "muster"}]}
    body = copy.deepcopy(PLACED)
    body["metadata"].update(plain)
    given = b.observed(b.a_job(lambda job: job["metadata"].update(generation=1)), groups=[body], pods=RUNNING)
    assert given.owner is not None
    status = placed_status(given.owner, None, [ManagedPodGroup.read(body)])
    assert status is not None
    assert plan_conditions(PlacedInputs(given.owner, status), b.NOW) == planned(given)
    body["metadata"]["managedFields"].append({"manager": "muster-resize-gang"})
    assert placed_status(given.owner, None, [ManagedPodGroup.read(body)]) is None

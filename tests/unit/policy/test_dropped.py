"""Settings that the API server dropped because their feature gate is off are told on the owner."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.scheduling import Workload
from muster.policy.conditions import plan_conditions
from muster.policy.dropped import dropped
from muster.policy.model import Home, HomeKind, Plan, Verb
from muster.policy.ownership import Considered, consider
from tests.support.builders import (
    NOW,
    Object,
    a_gang,
    a_job,
    a_pod_group,
    a_users_workload,
    a_workload,
    bound,
    observed,
    placed,
    pods_of,
)

TOPOLOGY = {"topology": [{"key": "rack"}]}
ASKED = (
    "workload: {groups: [{name: main, schedulingConstraints: {topology: [{key: rack}]}, "
    "preemptionPolicy: PreemptLowerPriority}]}"
)
BOTH: dict[str, Any] = {"schedulingConstraints": TOPOLOGY, "preemptionPolicy": "PreemptLowerPriority"}
EXIST = "1 of 1 PodGroups exist"
NO_TOPOLOGY = "schedulingConstraints of main: the feature gate is off (TopologyAwareWorkloadScheduling)"
NO_PREEMPTION = "preemptionPolicy of main: the feature gate is off (PodGroupPreemptionPolicy)"


def ready(workload: Object | None, policy: str, *, kind: HomeKind = HomeKind.STORED, **more: Any) -> Object:
    """What the owner of a running gang says of its groups."""
    job = a_job()
    homes = (Home(kind, "home", policy),) if policy else ()
    pods = pods_of(job, bound)
    groups = [a_pod_group("llama-main-33333333", placed)]
    given = observed(job, workload=workload, groups=groups, pods=pods, homes=homes, **more)
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    (status,) = (one for one in plan.actions if one.verb == Verb.PATCH)
    assert status.body is not None
    said: Object = status.body["status"]["conditions"][0]
    return said


@pytest.mark.parametrize(
    ("kept", "reason", "message"),
    [
        pytest.param(BOTH, "PodGroupsExist", EXIST, id="all is kept"),
        pytest.param(
            {},
            "FieldsDropped",
            f"{EXIST}; not kept by the API server: {NO_TOPOLOGY}; {NO_PREEMPTION}",
            id="nothing is kept",
        ),
        pytest.param(
            {"schedulingConstraints": TOPOLOGY},
            "FieldsDropped",
            f"{EXIST}; not kept by the API server: {NO_PREEMPTION}",
            id="one of two is kept",
        ),
    ],
)
def test_what_is_not_kept_is_told(kept: dict[str, Any], reason: str, message: str) -> None:
    """The groups exist, so the condition is True; its reason and message say what is missing."""
    said = ready(a_workload(a_gang("main", 2, **kept)), ASKED)
    assert (said["status"], said["reason"], said["message"]) == ("True", reason, message)


@pytest.mark.parametrize(
    ("workload", "policy", "more"),
    [
        pytest.param(a_workload(a_gang("main", 2)), "", {}, id="nothing was asked for"),
        pytest.param(
            None, "", {"others": [a_users_workload(a_gang("main", 2))]}, id="a Workload of the user's own"
        ),
        pytest.param(None, ASKED, {}, id="no Workload any more"),
    ],
)
def test_else_nothing_is_told(workload: Object | None, policy: str, more: dict[str, Any]) -> None:
    """Only what Muster asked for can have been dropped."""
    assert ready(workload, policy, **more)["message"] == EXIST


def test_what_differs_in_size_is_told_beside_it() -> None:
    """The reason is the one that came first; the message has both."""
    policy = ASKED.replace("workload: {", "workload: {onScale: Flag, ")
    job = a_job(pods=1)
    given = observed(
        job,
        workload=a_workload(a_gang("main", 2)),
        groups=[a_pod_group("llama-main-33333333", placed)],
        pods=pods_of(job, bound),
        homes=(Home(HomeKind.STORED, "home", policy),),
    )
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    said = (plan.actions[0].body or {})["status"]["conditions"][0]
    assert said["reason"] == "ScalingFlagged"
    assert "its pods ask for 1; not kept by the API server: " in said["message"]


def test_in_a_tree_each_group_is_named() -> None:
    """Composites as well as the groups below them."""
    policy = (
        "workload: {groups: [{name: all, preemptionPolicy: Never, groups: "
        "[{name: main, preemptionPolicy: Never, resourceClaims: [{name: x, resourceClaimName: y}]}]}]}"
    )
    composite = {
        "name": "all",
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "podGroupTemplates": [a_gang("main", 2)],
    }
    workload = a_workload()
    workload["spec"] |= {"podGroupTemplates": None, "compositePodGroupTemplates": [composite]}
    considered = consider(observed(workload=workload, homes=(Home(HomeKind.STORED, "home", policy),)))
    assert isinstance(considered, Considered)
    assert dropped(considered.tree, Workload.read(workload)) == (
        "preemptionPolicy of all, main: the feature gate is off (PodGroupPreemptionPolicy); "
        "resourceClaims of main: the feature gate is off (DRAWorkloadResourceClaims)"
    )

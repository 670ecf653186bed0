"""The owner's condition names the settings that the API server dropped because a feature gate is off."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.scheduling import Workload
from muster.policy.model import Plan, Verb
from muster.policy.owner_status.dropped_settings import dropped_settings
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
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
from tests.support.messages import mentions
from tests.support.planning import plan_conditions, resolve

TOPOLOGY = {"topology": [{"key": "rack"}]}
ASKED = (
    "workload: {groups: [{name: main, schedulingConstraints: {topology: [{key: rack}]}, "
    "preemptionPolicy: PreemptLowerPriority}]}"
)
BOTH: dict[str, Any] = {"schedulingConstraints": TOPOLOGY, "preemptionPolicy": "PreemptLowerPriority"}
NO_TOPOLOGY = ("schedulingConstraints", "main", "TopologyAwareWorkloadScheduling")
NO_PREEMPTION = ("preemptionPolicy", "main", "PodGroupPreemptionPolicy")


def ready(
    workload: Object | None, policy: str, *, kind: PolicySourceKind = PolicySourceKind.STORED, **more: Any
) -> Object:
    """What the owner of a running gang says of its groups."""
    job = a_job()
    sources = (PolicySource(kind, "home", policy),) if policy else ()
    pods = pods_of(job, bound)
    groups = [a_pod_group("llama-main-33333333", placed)]
    given = observed(job, workload=workload, groups=groups, pods=pods, sources=sources, **more)
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    (status,) = (action for action in plan.actions if action.verb == Verb.PATCH)
    assert status.body is not None
    condition: Object = status.body["status"]["conditions"][0]
    return condition


@pytest.mark.parametrize(
    ("kept", "reason", "missing", "there"),
    [
        pytest.param(BOTH, "PodGroupsExist", (), (NO_TOPOLOGY, NO_PREEMPTION), id="all is kept"),
        pytest.param(
            {},
            "FieldsDropped",
            (NO_TOPOLOGY, NO_PREEMPTION),
            (),
            id="nothing is kept",
        ),
        pytest.param(
            {"schedulingConstraints": TOPOLOGY},
            "FieldsDropped",
            (NO_PREEMPTION,),
            (NO_TOPOLOGY,),
            id="one of two is kept",
        ),
    ],
)
def test_dropped_settings_are_reported(
    kept: dict[str, Any],
    reason: str,
    missing: tuple[tuple[str, ...], ...],
    there: tuple[tuple[str, ...], ...],
) -> None:
    """The groups exist, so the condition is True; its reason and message say what is missing."""
    condition = ready(a_workload(a_gang("main", 2, **kept)), ASKED)
    assert (condition["status"], condition["reason"]) == ("True", reason)
    assert all(mentions(condition["message"], *facts) for facts in missing)
    assert not any(mentions(condition["message"], field) for field, *_ in there)


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
def test_kept_settings_are_not_reported(workload: Object | None, policy: str, more: dict[str, Any]) -> None:
    """Only what Muster asked for can have been dropped."""
    condition = ready(workload, policy, **more)
    assert (condition["status"], condition["reason"]) == ("True", "PodGroupsExist")
    assert not mentions(condition["message"], "preemptionPolicy")


def test_a_size_difference_is_reported_beside_dropped_settings() -> None:
    """The reason is the one that came first; the message has both."""
    policy = ASKED.replace("workload: {", "workload: {onScale: Flag, ")
    job = a_job(pods=1)
    given = observed(
        job,
        workload=a_workload(a_gang("main", 2)),
        groups=[a_pod_group("llama-main-33333333", placed)],
        pods=pods_of(job, bound),
        sources=(PolicySource(PolicySourceKind.STORED, "home", policy),),
    )
    plan = plan_conditions(given, NOW)
    assert isinstance(plan, Plan)
    condition = (plan.actions[0].body or {})["status"]["conditions"][0]
    assert condition["reason"] == "ScalingFlagged"
    assert mentions(condition["message"], "llama-main-33333333", 2, 1, *NO_TOPOLOGY, *NO_PREEMPTION)


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
    resolved = resolve(
        observed(workload=workload, sources=(PolicySource(PolicySourceKind.STORED, "home", policy),))
    )
    assert isinstance(resolved, ResolvedOwner)
    message = dropped_settings(resolved.tree, Workload.read(workload))
    assert mentions(message, "all", *NO_PREEMPTION, "resourceClaims", "DRAWorkloadResourceClaims")

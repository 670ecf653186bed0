"""preemptionPolicy of groups: that of their pods' PriorityClass, or the API server refuses them.

The gate PodGroupPreemptionPolicy fills in the default before admission compares (seen on Kubernetes v1.37.1).
"""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.scheduling import CompositePodGroup, PriorityClass, Workload
from muster.policy import group_labels
from muster.policy.model import Action, Plan
from muster.policy.reasons import Reason
from muster.policy.sources import source as sources
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    WORKLOAD_UID,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_replicated_job,
    a_users_workload,
    annotated,
    observed,
    stamped,
    template_labelled,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import (
    Observed,
    needs_priority_classes,
    plan_pod_groups,
    plan_resize,
    plan_workload,
)
from tests.support.priorities import a_priority_class_view, of_class

POLITE_DEFAULT = a_priority_class_view("usual", 1, globalDefault=True, preemptionPolicy="Never")
POLITE = a_priority_class_view("polite", 1000, preemptionPolicy="Never")
PUSHY = a_priority_class_view("pushy", 1000, preemptionPolicy="PreemptLowerPriority")
SIM = a_jobset(a_replicated_job("a", of_class("polite")), a_replicated_job("b", of_class("polite")))
TREE = "workload: {groups: [{name: all, groups: [{name: a}, {name: b}]}]}"


def world(jobset: Object = SIM, *classes: PriorityClass, policy: str = "", **more: Any) -> Observed:
    """A JobSet with its Jobs, beside these PriorityClasses."""
    jobs = [a_child_job(jobset, entry["name"], 0) for entry in jobset["spec"]["replicatedJobs"]]
    asked = (PolicySource(PolicySourceKind.OWNER, "home", policy),) if policy else ()
    return observed(jobset, jobs=jobs, sources=asked, priority_classes=classes, **more)


def made(given: Observed) -> list[Action]:
    """What create_workload creates."""
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan), plan
    return [action for action in plan.actions if action.verb == "create"]


def settings(template: Object) -> dict[str, Any]:
    """The preemptionPolicy of a template and of those below it, by name."""
    below = [*(template.get("podGroupTemplates") or []), *(template.get("compositePodGroupTemplates") or [])]
    policies = {template["name"]: template.get("preemptionPolicy")} if "name" in template else {}
    for child in below:
        policies |= settings(child)
    return policies


def stored(body: Object) -> Object:
    """A Workload as the API server keeps it."""
    return {**body, "metadata": {**body["metadata"], "uid": WORKLOAD_UID, "resourceVersion": "7"}}


def spec_of(action: Action) -> Object:
    """The spec of what an action creates."""
    assert action.body is not None
    return dict(action.body["spec"])


@pytest.mark.parametrize(
    ("classes", "policy", "found"),
    [
        pytest.param((POLITE,), "", {"a": "Never", "b": "Never"}, id="their class never preempts"),
        pytest.param(
            (POLITE,), TREE, {"all": "Never", "a": "Never", "b": "Never"}, id="in a tree, at every level"
        ),
        pytest.param((), "", {"a": None, "b": None}, id="the class was not read"),
    ],
)
def test_templates_have_the_preemption_policy_of_the_class(
    classes: tuple[PriorityClass, ...], policy: str, found: dict[str, Any]
) -> None:
    """PodGroups are made of the stored templates, so it has to stand there."""
    (workload,) = made(world(SIM, *classes, policy=policy))
    assert settings(spec_of(workload)) == found


@pytest.mark.parametrize(
    ("default", "found"),
    [
        pytest.param((), None, id="no default class"),
        pytest.param((a_priority_class_view("usual", 1, globalDefault=True),), None, id="one that preempts"),
        pytest.param(
            (a_priority_class_view("usual", 1, globalDefault=True, preemptionPolicy="Never"),),
            "Never",
            id="one that never does",
        ),
    ],
)
def test_pods_without_a_class_have_the_default_preemption_policy(
    default: tuple[PriorityClass, ...], found: str | None
) -> None:
    """The API server puts it on pods and groups alike."""
    plain = a_jobset(a_replicated_job("a"))
    (workload,) = made(world(plain, PUSHY, *default))
    assert settings(spec_of(workload)) == {"a": found}


def test_groups_of_two_classes_have_their_own() -> None:
    """One that preempts beside one that never does."""
    both = a_jobset(a_replicated_job("a", of_class("polite")), a_replicated_job("b", of_class("pushy")))
    (workload,) = made(world(both, POLITE, PUSHY))
    assert settings(spec_of(workload)) == {"a": "Never", "b": None}


def test_a_template_without_pods_has_no_say() -> None:
    """No pod of the group has its class."""
    empty = a_replicated_job("a", pods=0, label="g")
    both = a_jobset(empty, a_replicated_job("b", of_class("polite"), label="g"))
    (workload,) = made(world(both, POLITE))
    assert settings(spec_of(workload)) == {"g": "Never"}


def test_groups_of_one_template_cannot_differ() -> None:
    """They are made of one template; each fallback group has what its own pods have."""
    each = template_labelled({group_labels.GROUP_PER: "job"})
    both = a_jobset(
        a_replicated_job("a", each, of_class("polite"), label="g"),
        a_replicated_job("b", of_class("pushy"), label="g"),
    )
    plan = plan_workload(world(both, POLITE, PUSHY), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.PRIORITIES_DIFFER
    groups = {
        action.target.name: spec_of(action) for action in plan.actions if action.target.kind == "PodGroup"
    }
    assert {name: spec.get("preemptionPolicy") for name, spec in groups.items()} == {
        "llama-g-22222222-0": "Never",
        "llama-g-22222222": None,
    }


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        pytest.param(
            "workload: {groups: [{name: a, preemptionPolicy: PreemptLowerPriority}]}",
            "workload.groups[0].preemptionPolicy",
            id="a group of pods",
        ),
        pytest.param(
            "workload: {groups: [{name: all, preemptionPolicy: PreemptLowerPriority, "
            "groups: [{name: a}, {name: b}]}]}",
            "workload.groups[0].preemptionPolicy",
            id="a group of groups",
        ),
        pytest.param(
            "workload: {groups: [{name: all, groups: [{name: a}, "
            "{name: b, preemptionPolicy: PreemptLowerPriority}]}]}",
            "workload.groups[0].groups[1].preemptionPolicy",
            id="a group below another",
        ),
    ],
)
def test_a_policy_that_says_otherwise_is_invalid(policy: str, path: str) -> None:
    """The API server would refuse the groups; fallback groups of the class's own are made instead."""
    plan = plan_workload(world(SIM, POLITE, policy=policy), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.INVALID_POLICY
    assert mentions(plan.message, "home", path, "Never")
    fallback = [spec_of(action) for action in plan.actions if action.target.kind == "PodGroup"]
    fallback_group = {
        "schedulingPolicy": {"basic": {}},
        "priorityClassName": "polite",
        "preemptionPolicy": "Never",
    }
    assert fallback == [fallback_group, fallback_group]


def test_a_policy_that_says_the_same_is_kept() -> None:
    """As it is without it."""
    policy = "workload: {groups: [{name: a, preemptionPolicy: Never}]}"
    (workload,) = made(world(SIM, POLITE, policy=policy))
    assert settings(spec_of(workload)) == {"a": "Never", "b": "Never"}


def test_groups_and_fallback_groups_take_it_from_the_template() -> None:
    """create_pod_groups reads no PriorityClass: the stored Workload says it."""
    (workload,) = made(world(SIM, POLITE, policy=TREE))
    body = stored(dict(workload.body or {}))
    kept = sources.source_of_workload(Workload.read(body))
    given = observed(SIM, jobs=(), workload=body, sources=kept)
    plan = plan_pod_groups(given, NOW)
    assert isinstance(plan, Plan)
    instead = [
        refused
        for action in plan.actions
        for refused in action.if_refused
        if refused.target.kind == "PodGroup"
    ]
    assert len(plan.actions) == 3
    assert len(instead) == 4
    assert {spec_of(action)["preemptionPolicy"] for action in (*plan.actions, *instead)} == {"Never"}


def test_a_composite_that_takes_the_place_of_another_has_it_too() -> None:
    """One child has ended, so one group is enough."""
    (workload,) = made(world(SIM, POLITE, policy=TREE))
    body = stored(dict(workload.body or {}))
    kept = sources.source_of_workload(Workload.read(body))
    finished = a_child_job(SIM, "a", 0)
    finished["status"] = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 2}
    jobs = [finished, a_child_job(SIM, "b", 0)]
    groups = plan_pod_groups(observed(SIM, jobs=(), workload=body, sources=kept), NOW)
    assert isinstance(groups, Plan)
    there = [stored(dict(action.body or {})) for action in groups.actions]
    above = CompositePodGroup.read(there[0])
    plan = plan_resize(
        observed(SIM, jobs=jobs, workload=body, sources=kept, composites=(above,), groups=there[1:]), NOW
    )
    assert isinstance(plan, Plan)
    (again,) = (action for action in plan.actions if action.verb == "create")
    assert spec_of(again)["preemptionPolicy"] == "Never"
    assert spec_of(again)["schedulingPolicy"] == {"gang": {"minGroupCount": 1}}


@pytest.mark.parametrize("policy", ["Never", "PreemptLowerPriority"])
def test_a_fallback_group_has_the_preemption_policy_of_its_pods(policy: str) -> None:
    """Of an owner that is skipped the pods alone are asked."""
    job = a_job(annotated({"scheduling.k8s.io/group-template-name": "theirs"}))
    pod = a_pod(job, 0, stamped("llama-main-33333333"), with_spec(preemptionPolicy=policy))
    (fallback_group, *_) = made(observed(job, pods=[pod]))
    assert spec_of(fallback_group).get("preemptionPolicy") == ("Never" if policy == "Never" else None)


@pytest.mark.parametrize(
    ("given", "judges", "makes"),
    [
        pytest.param(world(), False, True, id="one class"),
        pytest.param(
            world(policy="workload: {groups: [{name: a, preemptionPolicy: Never}]}"),
            True,
            True,
            id="a policy that says what theirs has to say",
        ),
        pytest.param(
            world(a_jobset(a_replicated_job("a"))),
            False,
            True,
            id="no class at all: the cluster may have a default one",
        ),
        pytest.param(
            world(others=[a_users_workload(a_gang("a", 2), a_gang("b", 2), root=SIM)]),
            False,
            False,
            id="the user's own Workload decides",
        ),
        pytest.param(
            world(others=[a_users_workload(name=name, root=SIM) for name in ("one", "two")]),
            False,
            True,
            id="two Workloads of the user's own: fallback groups are made",
        ),
    ],
)
def test_classes_are_read_by_who_makes_groups(given: Observed, judges: bool, makes: bool) -> None:
    """emit_conditions judges as create_workload did, and asks only where that depends on the classes."""
    assert needs_priority_classes(given) is judges
    assert needs_priority_classes(given, to_make=True) is makes

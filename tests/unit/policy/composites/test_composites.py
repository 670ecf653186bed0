"""CompositePodGroups: compiled, created parents first, refused, switched off, resized, and in conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.objects.resources import SchedulingApi
from muster.objects.scheduling import CompositePodGroup, PodGroup
from muster.policy import group_labels
from muster.policy.model import NoOp, Plan, Verb
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Modifier,
    Object,
    a_gang,
    a_job,
    a_pod,
    a_pod_group,
    a_users_workload,
    a_workload,
    being_deleted,
    bound,
    observed,
    placed,
    template_labelled,
    template_spec,
    with_status,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_conditions, plan_pod_groups, plan_resize, plan_workload
from tests.support.trees import a_composite, below

POLICY = """
workload:
  groups:
  - name: zone
    schedulingConstraints: {topology: [{key: zone}]}
    groups:
    - name: main
      size: 2
      schedulingConstraints: {topology: [{key: rack}]}
"""
OFF = SchedulingApi(composites=False)
OLD = SchedulingApi(version="v1alpha2", composites=False)


def sources(text: str = POLICY) -> tuple[PolicySource, ...]:
    """A policy on the owner."""
    return (PolicySource(PolicySourceKind.OWNER, "home", text),)


def blocks(pods: int = 5, *modifiers: Any) -> Object:
    """A Job in blocks of two."""
    return a_job(template_labelled({group_labels.GROUP_SIZE: "2"}), *modifiers, pods=pods)


WHOLE: Object = {"all": {}}
LEAF = a_gang("main", 2, disruptionMode=WHOLE, schedulingConstraints={"topology": [{"key": "rack"}]})
ZONE = {
    "name": "zone",
    "schedulingPolicy": {"gang": {"minGroupCount": 3}},
    "disruptionMode": WHOLE,
    "schedulingConstraints": {"topology": [{"key": "zone"}]},
    "podGroupTemplates": [LEAF],
}


def stored(*templates: Object) -> Object:
    """The Workload as the API server keeps it: the unset list comes back as null."""
    workload = a_workload(root=blocks())
    workload["spec"] |= {"podGroupTemplates": None, "compositePodGroupTemplates": list(templates or [ZONE])}
    return workload


def plan(made: Plan | NoOp) -> Plan:
    """The plan; fails where there is none."""
    assert isinstance(made, Plan), made
    return made


def seen(**rest: Any) -> Observed:
    """The Job in blocks with its stored Workload."""
    return observed(blocks(), workload=stored(), sources=sources(), **rest)


def test_a_tree_is_compiled_into_nested_templates() -> None:
    """One composite at the top, and no podGroupTemplates beside it: the API takes one of the two."""
    (action,) = plan(plan_workload(observed(blocks(), sources=sources()), NOW)).actions
    assert action.body is not None
    assert "podGroupTemplates" not in action.body["spec"]
    assert action.body["spec"]["compositePodGroupTemplates"] == [ZONE]


def test_every_template_has_the_same_priority() -> None:
    """The API refuses a Workload whose templates differ, composite ones included."""
    job = blocks(5, template_spec(priorityClassName="high"))
    (action,) = plan(plan_workload(observed(job, sources=sources()), NOW)).actions
    assert action.body is not None
    (zone,) = action.body["spec"]["compositePodGroupTemplates"]
    assert zone["priorityClassName"] == zone["podGroupTemplates"][0]["priorityClassName"] == "high"


def test_composites_that_somebody_added_to_musters_workload_are_not_made() -> None:
    """Each event would try to create hundreds of them again."""
    added = [a_gang("other", 2) | {"name": f"other-{number}"} for number in range(3)]
    others = [ZONE | {"name": f"zone-{entry['name']}", "podGroupTemplates": [entry]} for entry in added]
    given = observed(blocks(), workload=stored(ZONE, *others), sources=sources())
    made = {action.target.name for action in plan(plan_pod_groups(given, NOW)).actions}
    assert made == {"llama-zone-33333333", *(f"llama-main-33333333-{number}" for number in range(3))}


def test_parents_are_made_before_children_and_named_by_them() -> None:
    """The CompositePodGroup first, with its counts; then a PodGroup for each block, the last one smaller."""
    actions = plan(plan_pod_groups(seen(), NOW)).actions
    made = [(action.target.kind, action.target.name) for action in actions]
    assert made == [
        ("CompositePodGroup", "llama-zone-33333333"),
        ("PodGroup", "llama-main-33333333-0"),
        ("PodGroup", "llama-main-33333333-1"),
        ("PodGroup", "llama-main-33333333-2"),
    ]
    specs = [action.body["spec"] for action in actions if action.body]
    assert specs[0] == {
        "workloadRef": {"templateName": "zone", "workloadName": stored()["metadata"]["name"]},
        "schedulingPolicy": {"gang": {"minGroupCount": 3}},
        "disruptionMode": WHOLE,
        "schedulingConstraints": {"topology": [{"key": "zone"}]},
    }
    assert {spec["parentCompositePodGroupName"] for spec in specs[1:]} == {"llama-zone-33333333"}
    assert [spec["schedulingPolicy"]["gang"]["minCount"] for spec in specs[1:]] == [2, 2, 1]
    assert all(spec["schedulingConstraints"] == {"topology": [{"key": "rack"}]} for spec in specs[1:])


def test_owner_references_of_a_composite_are_those_of_a_group() -> None:
    """The owner as controller, then the Workload; API version v1alpha3."""
    composite = plan(plan_pod_groups(seen(), NOW)).actions[0].body
    assert composite is not None
    assert composite["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    kinds = [
        (reference["kind"], reference.get("controller"))
        for reference in composite["metadata"]["ownerReferences"]
    ]
    assert kinds == [("Job", True), ("Workload", None)]


def test_an_existing_composite_is_not_created_again() -> None:
    """A composite that is there is left; the children that are missing are made."""
    given = seen(composites=(zone(3),), groups=[a_pod_group("llama-main-33333333-1")])
    names = [action.target.name for action in plan(plan_pod_groups(given, NOW)).actions]
    assert names == ["llama-main-33333333-0", "llama-main-33333333-2"]


def test_a_refused_composite_leaves_fallback_groups_for_all_below() -> None:
    """Its children would wait for a parent for ever."""
    composite = plan(plan_pod_groups(seen(), NOW)).actions[0]
    event, *fallback = composite.if_refused
    assert [action.target.name for action in fallback] == [
        f"llama-main-33333333-{block}" for block in range(3)
    ]
    assert all(action.body["spec"]["schedulingPolicy"] == {"basic": {}} for action in fallback if action.body)
    assert event.target.kind == "Event"


def test_a_refused_composite_leaves_no_fallback_group_that_exists() -> None:
    """Each delivery would try to create all of them again."""
    composite = plan(plan_pod_groups(seen(groups=[a_pod_group("llama-main-33333333-1")]), NOW)).actions[0]
    assert [action.target.name for action in composite.if_refused[1:]] == [
        "llama-main-33333333-0",
        "llama-main-33333333-2",
    ]


def test_a_refused_composite_of_a_policy_that_holds_leaves_an_event() -> None:
    """onFailure: Hold keeps the pods gated."""
    given = observed(blocks(), workload=stored(), sources=sources(f"{POLICY}  onFailure: Hold"))
    composite = plan(plan_pod_groups(given, NOW)).actions[0]
    assert [action.target.kind for action in composite.if_refused] == ["Event"]


@pytest.mark.parametrize("api", [pytest.param(OFF, id="gate off"), pytest.param(OLD, id="Kubernetes 1.36")])
def test_where_composites_are_not_served_such_a_policy_is_invalid(api: SchedulingApi) -> None:
    """Said so, and basic fallback groups let the pods run."""
    decision = plan(plan_workload(observed(blocks(), sources=sources(), scheduling=api), NOW))
    assert decision.reason == Reason.INVALID_POLICY
    assert mentions(decision.message, "CompositePodGroup")
    made = [action.target.name for action in decision.actions if action.target.kind == "PodGroup"]
    assert made == [f"llama-main-33333333-{block}" for block in range(3)]


def test_a_users_composite_workload_whose_kind_is_switched_off_is_reported() -> None:
    """It is stored and cannot be made into groups any more."""
    own = a_users_workload(root=blocks())
    own["spec"] |= {"podGroupTemplates": None, "compositePodGroupTemplates": [ZONE]}
    decision = plan(plan_workload(observed(blocks(), others=[own], scheduling=OFF), NOW))
    assert decision.reason == Reason.API_NOT_SERVED
    assert mentions(decision.message, "mine", "CompositePodGroup")
    assert {action.target.kind for action in decision.actions} == {"PodGroup", "Job", "Event"}
    served = plan_workload(observed(blocks(), others=[own]), NOW)
    assert served.reason == Reason.OWN_WORKLOAD


def test_a_users_composite_that_only_shares_a_name_with_a_group_label_does_not_fit() -> None:
    """Pods are members of groups of pods, never of a group of groups."""
    own = a_users_workload(root=blocks())
    named = {**ZONE, "name": "main", "podGroupTemplates": [a_gang("other", 1)]}
    own["spec"] |= {"podGroupTemplates": None, "compositePodGroupTemplates": [named]}
    assert plan_workload(observed(blocks(), others=[own]), NOW).reason == Reason.WORKLOAD_DOES_NOT_FIT


NAME = "llama-zone-33333333"


def zone(groups: int, *modifiers: Modifier) -> CompositePodGroup:
    """The CompositePodGroup of the Job in blocks."""
    return CompositePodGroup.read(a_composite(NAME, groups, *modifiers, root=blocks()))


def test_a_nested_template_is_resized_in_place() -> None:
    """Each number by its path in the Workload, guarded by the resourceVersion that was read."""
    job = blocks(1)
    group = a_pod_group("llama-main-33333333-0", root=job)
    given = observed(job, workload=stored(), sources=sources(POLICY), groups=[group])
    workload, pod_group = plan(plan_resize(given, NOW)).actions
    at = "/spec/compositePodGroupTemplates/0"
    assert [(operation["path"], operation["value"]) for operation in workload.operations] == [
        ("/metadata/resourceVersion", "7"),
        (f"{at}/schedulingPolicy/gang/minGroupCount", 1),
        (f"{at}/podGroupTemplates/0/schedulingPolicy/gang/minCount", 1),
    ]
    assert pod_group.body is not None
    assert pod_group.body["spec"] == {"schedulingPolicy": {"gang": {"minCount": 1}}}


def in_blocks(completed: str, *, pods: list[Object], groups: int = 3) -> Observed:
    """The Job in three blocks with indexes that have ended, its groups and its composite."""
    job = blocks(5, with_status(completedIndexes=completed))
    made = [
        a_pod_group(f"llama-main-33333333-{number}", placed, below(NAME), root=job) for number in range(3)
    ]
    return observed(
        job,
        workload=stored(),
        sources=sources(),
        groups=made,
        composites=(zone(groups),) if groups else (),
        pods=pods,
    )


def min_group_counts(given: Observed) -> list[tuple[str, int]]:
    """What is done about the CompositePodGroup, and its minGroupCount after."""
    decision = plan_resize(given, NOW)
    actions = decision.actions if isinstance(decision, Plan) else ()
    return [
        (
            str(action.verb),
            action.body["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] if action.body else 0,
        )
        for action in actions
        if action.target.kind == "CompositePodGroup"
    ]


RUNNING = a_pod(blocks(5), 4, bound)
GOING = a_pod(blocks(5), 4, bound, being_deleted)


@pytest.mark.parametrize(
    ("given", "done"),
    [
        pytest.param(in_blocks("", pods=[RUNNING]), [], id="all blocks have something to run"),
        pytest.param(in_blocks("0", pods=[RUNNING]), [], id="one of a block has ended, the other has not"),
        pytest.param(
            in_blocks("0,1", pods=[RUNNING]), [("delete", 0), ("create", 2)], id="a whole block has ended"
        ),
        pytest.param(
            in_blocks("0-3", pods=[RUNNING]), [("delete", 0), ("create", 1)], id="two blocks have ended"
        ),
        pytest.param(
            in_blocks("0,x,1", pods=[RUNNING]),
            [("delete", 0), ("create", 2)],
            id="a file has an index that is no number",
        ),
        pytest.param(
            in_blocks("", pods=[RUNNING], groups=1), [], id="all blocks count again, but one of them runs"
        ),
        pytest.param(
            in_blocks("", pods=[], groups=1),
            [("delete", 0), ("create", 3)],
            id="restarted: all blocks count again and none runs",
        ),
        pytest.param(
            in_blocks("", pods=[GOING], groups=1),
            [("delete", 0), ("create", 3)],
            id="restarted: what still runs is on its way out",
        ),
        pytest.param(
            in_blocks("0,1", pods=[RUNNING], groups=0),
            [("create", 2)],
            id="the step that replaced it was stopped in between",
        ),
    ],
)
def test_child_groups_that_ended_are_no_longer_waited_for(given: Observed, done: list[Any]) -> None:
    """Else the replacement of a pod in another child would never be placed; the spec itself never changes."""
    assert min_group_counts(given) == done


def test_a_composite_that_a_finalizer_keeps_does_not_stop_its_groups_from_being_resized() -> None:
    """It cannot be replaced before it is gone; to try would fail, and nothing after it would be written."""
    given = replace(in_blocks("0,1", pods=[RUNNING]), composites=(zone(3, being_deleted),))
    assert min_group_counts(given) == []
    assert {action.target.kind for action in plan(plan_resize(given, NOW)).actions} == {
        "Workload",
        "PodGroup",
    }


def test_a_fallback_group_does_not_count_for_the_composite_that_it_is_not_in() -> None:
    """The API server refused the PodGroup of a new block: the others would wait for it for ever."""
    given = in_blocks("", pods=[RUNNING])
    outside = PodGroup.read(a_pod_group("llama-main-33333333-2", root=blocks(5), min_count=None))
    assert min_group_counts(replace(given, groups=(*given.groups[:2], outside))) == [
        ("delete", 0),
        ("create", 2),
    ]


def test_a_composite_that_is_created_late_waits_only_for_the_groups_in_it() -> None:
    """The policy was invalid or the API server refused the composite; two blocks have fallback groups."""
    fallback = [a_pod_group(f"llama-main-33333333-{block}", min_count=None) for block in range(2)]
    composite, group = plan(plan_pod_groups(seen(groups=fallback), NOW)).actions
    assert composite.body is not None
    assert composite.body["spec"]["schedulingPolicy"] == {"gang": {"minGroupCount": 1}}
    assert group.target.name == "llama-main-33333333-2"


def test_the_composite_that_takes_the_place_is_the_same_but_for_its_number() -> None:
    """Owner, Workload, constraints and name as before; the deletion is of that very object."""
    delete, create = (
        action
        for action in plan(plan_resize(in_blocks("0,1", pods=[RUNNING]), NOW)).actions
        if action.target.kind == "CompositePodGroup"
    )
    first = plan(plan_pod_groups(seen(), NOW)).actions[0].body
    assert first is not None
    assert create.body is not None
    assert delete.target.uid == "llama-zone-33333333-uid"
    assert create.body["metadata"] == first["metadata"]
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
    assert create.body["spec"] == {**first["spec"], **policy}


def test_a_composite_that_was_never_made_is_not_resizes_to_make() -> None:
    """Before its children exist create_pod_groups creates it, and fallback groups where it is refused."""
    assert min_group_counts(seen()) == []


def test_the_composite_is_right_before_its_groups_are() -> None:
    """Template, composite, PodGroup: the event of the last one reaches patch_pods."""
    kinds = [
        action.target.kind for action in plan(plan_resize(in_blocks("0,1", pods=[RUNNING]), NOW)).actions
    ]
    assert kinds == ["Workload", "CompositePodGroup", "CompositePodGroup", "PodGroup", "PodGroup"]


def test_a_missing_composite_is_reported_like_a_missing_group() -> None:
    """No other component says so: the scheduler waits for it silently."""
    groups = [a_pod_group(f"llama-main-33333333-{block}") for block in range(3)]
    decision = plan(plan_conditions(seen(groups=groups), NOW))
    (status, *_) = (action for action in decision.actions if action.verb == Verb.PATCH)
    assert status.body is not None
    ready = status.body["status"]["conditions"][0]
    assert ready["reason"] == Reason.WAITING_FOR_POD_GROUP
    assert mentions(ready["message"], "llama-zone-33333333")

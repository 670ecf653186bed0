"""Hypothesis strategies for owners and their policies; most pairs are valid, some are not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from muster.objects.scheduling import PriorityClass, Workload
from muster.policy import group_labels
from muster.policy.model import Plan
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind, source_of_workload
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_replicated_job,
    a_trainjob,
    annotated,
    observed,
    owned_by,
    template_labelled,
    template_spec,
)
from tests.support.planning import Observed, plan_pod_groups, plan_workload, resolve

NOT_SLOW = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = ("a", "b", "c", "d")
CLASSES = [
    PriorityClass.read(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "uid": f"{name}-uid"},
            "value": value,
            "preemptionPolicy": preemption,
        }
    )
    for name, value, preemption in (
        ("high", 1000, None),
        ("urgent", 1000, None),
        ("low", 10, None),
        ("polite", 10, "Never"),
    )
]
"""Two of value 1000, which pods of one group may mix; two of value 10, whose preemption policies differ."""

EXCLUSIVE = annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})


@st.composite
def jobsets(draw: st.DrawFn) -> Object:
    """Draw a JobSet of one to four replicatedJobs with all kinds of group labels and dependencies."""
    entries: list[Object] = []
    alike, different = ["high", "urgent"], ["", "low", "polite"]
    classes = draw(st.sampled_from([[""], ["polite"], alike, alike, different, different, different]))
    for index in range(draw(st.integers(1, 4))):
        labels = draw(_group_labels(index))
        modifiers: list[Any] = [template_labelled(labels)]
        if draw(st.integers(0, 9)) == 0:
            modifiers.append(EXCLUSIVE)
        modifiers.append(template_spec(priorityClassName=draw(st.sampled_from(classes))))
        if draw(st.integers(0, 9)) == 0:
            modifiers.append(template_spec(schedulerName="another-scheduler"))
        entry = a_replicated_job(
            f"job-{index}",
            *modifiers,
            pods=draw(st.integers(0, 4)),
            replicas=draw(st.integers(1, 3)),
            label=draw(st.sampled_from(NAMES[: index + 1])),
        )
        earlier = [entry["name"] for entry in entries]
        if earlier and draw(st.integers(0, 2)) == 0:
            status = draw(st.sampled_from(["Ready", "Complete"]))
            entry["dependsOn"] = [{"name": draw(st.sampled_from(earlier)), "status": status}]
        entries.append(entry)
    return a_jobset(*entries)


def _group_labels(index: int) -> st.SearchStrategy[dict[str, str]]:
    """Draw the labels beside muster.dev/group on the pod template with this index."""
    leads = {group_labels.LEADER_GROUP: f"lead-{index}"}
    per_job, blocks = {group_labels.GROUP_PER: "job"}, {group_labels.GROUP_SIZE: "2"}
    new = [
        blocks | {group_labels.GROUP_PER: "job-block"},
        leads | {group_labels.LEADER_GROUP_PER: "job"},
        leads | per_job | {group_labels.LEADER_GROUP_PER: "job"},
    ]
    return st.sampled_from([{}, {}, {}, {}, per_job, per_job, blocks, blocks, leads, leads, *new])


def groups_of_templates(jobs: list[Object]) -> list[str]:
    """Return the name of every group that pods of these Jobs or Job templates can be in."""
    names: dict[str, None] = {}
    for job in jobs:
        label = group_labels.read_group_labels(job["spec"]["template"]["metadata"]["labels"])
        assert label is not None
        names |= dict.fromkeys(label.groups)
    return list(names)


_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "schedulingConstraints": st.just({"topology": [{"key": "topology.kubernetes.io/zone"}]}),
        "disruptionMode": st.sampled_from([{"all": {}}, {"single": {}}]),
        # Mostly the policy of the pods, which any other contradicts.
        "preemptionPolicy": st.sampled_from([*["PreemptLowerPriority"] * 5, "Never"]),
    },
)


def _policy(count: str) -> st.SearchStrategy[dict[str, Any]]:
    gangs = st.integers(1, 3).map(lambda number: {"schedulingPolicy": {"gang": {count: number}}})
    basic: st.SearchStrategy[dict[str, Any]] = st.just({"schedulingPolicy": {"basic": {}}})
    return st.one_of(st.just({}), gangs, basic)


_SHAPES: st.SearchStrategy[dict[str, Any]] = st.sampled_from([*[{}] * 8, {"per": "Job"}, {"size": 2}])
# Made once, because making a strategy is slow.
_POLICY_OF_A_LEAF, _POLICY_OF_A_TREE = _policy("minCount"), _policy("minGroupCount")
_CLAIMS = st.sampled_from([{}, {}, {"resourceClaims": [{"name": "x", "resourceClaimName": "y"}]}])
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "onScale": st.sampled_from(["Follow", "Flag"]),
        "onFailure": st.sampled_from(["Basic", "Hold"]),
    },
)


@st.composite
def _leaf(draw: st.DrawFn, name: str) -> dict[str, Any]:
    return {"name": name, **draw(_SETTINGS), **draw(_POLICY_OF_A_LEAF), **draw(_CLAIMS)}


@st.composite
def _tree(draw: st.DrawFn, names: list[str], level: int) -> dict[str, Any]:
    """Draw a group whose children are groups of pods of these names, or further groups of them."""
    groups, rest, number = [], list(names), 0
    while rest:
        taken = draw(st.integers(1, len(rest)))
        part, rest, number = rest[:taken], rest[taken:], number + 1
        deeper = level < 4 and draw(st.booleans())
        if deeper:
            groups.append(draw(_tree(part, level + 1)))
        else:
            groups += [draw(_leaf(name)) for name in part]
    name = f"level-{level}-{names[0]}"
    return {"name": name, **draw(_SHAPES), **draw(_SETTINGS), **draw(_POLICY_OF_A_TREE), "groups": groups}


@st.composite
def policies(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """Draw a policy for groups of these names: empty, a flat list of some, or a tree over all."""
    shape = draw(st.sampled_from(["default", "flat", "tree", "tree", "odd"]))
    groups: list[dict[str, Any]] = []
    if shape == "flat":
        groups = [draw(_leaf(name)) for name in draw(st.lists(st.sampled_from(names), unique=True))]
    elif shape == "tree":
        groups = [draw(_tree(names, 1))]
    elif shape == "odd":
        groups = [draw(_spoilt(draw(_tree(names, 1))))]
    return {"workload": {**({"groups": groups} if groups else {}), **draw(_OPTIONS)}}


@st.composite
def _spoilt(draw: st.DrawFn, group: dict[str, Any]) -> dict[str, Any]:
    """Draw the group with one field that is invalid in any policy."""
    at = group
    while at.get("groups") and draw(st.booleans()):
        at = draw(st.sampled_from(at["groups"]))
    field, value = draw(
        st.sampled_from(
            [
                ("name", "Not A Name"),
                ("name", "nobody-is-marked-so"),
                ("bogus", 1),
                ("size", -1),
                ("per", "Pod"),
                ("schedulingPolicy", {}),
                ("schedulingPolicy", {"gang": {"minCount": 10_000}}),
                ("schedulingConstraints", {"topology": [{"key": "a"}, {"key": "b"}]}),
                ("groups", [{"name": "x"}] * 9),
                ("replicatedJobs", ["nobody"]),
                ("resourceClaims", [{"name": "x"}]),
            ]
        )
    )
    at[field] = value
    return group


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    """Draw a TrainJob with its JobSet, a JobSet, or a Job; with its Jobs and a policy."""
    kind = draw(st.sampled_from(["JobSet", "JobSet", "JobSet", "TrainJob", "Job"]))
    jobset = None if kind == "Job" else draw(jobsets())
    if jobset is None:
        owner = draw(_jobs())
        jobs = templates = [owner]
    else:
        owner = a_trainjob() if kind == "TrainJob" else jobset
        jobs, templates = jobs_of(jobset), [entry["template"] for entry in jobset["spec"]["replicatedJobs"]]
        if owner is not jobset:
            owned_by(owner)(jobset)
    sources = (PolicySource(PolicySourceKind.OWNER, "home", draw(policies(groups_of_templates(templates)))),)
    return observed(owner, jobset=jobset, sources=sources, jobs=jobs, priority_classes=tuple(CLASSES))


@st.composite
def _jobs(draw: st.DrawFn) -> Object:
    """Draw a Job without an owner, with group labels of any kind."""
    labels, priority_class = draw(_group_labels(0)), draw(st.sampled_from(["", "low", "polite"]))
    modifiers = template_labelled(labels), template_spec(priorityClassName=priority_class)
    return a_job(*modifiers, pods=draw(st.integers(0, 5)), label=draw(st.sampled_from(NAMES)))


def jobs_of(jobset: Object) -> list[Object]:
    """Return all Jobs of a JobSet."""
    return [
        a_child_job(jobset, entry["name"], index)
        for entry in jobset["spec"]["replicatedJobs"]
        for index in range(entry["replicas"])
    ]


def compiled(observed: Observed) -> list[Object]:
    """Return the Workload and groups that Muster creates; empty if the policy is invalid."""
    resolved = resolve(observed)
    assert isinstance(resolved, ResolvedOwner)
    if resolved.failure is not None:
        return []
    plan = plan_workload(observed, NOW)
    assert isinstance(plan, Plan), plan
    (workload,) = (action.body for action in plan.actions if action.target.kind == "Workload")
    assert workload is not None
    stored = _stored(dict(workload))
    groups = plan_pod_groups(_with_workload(observed, stored), NOW)
    actions = groups.actions if isinstance(groups, Plan) else ()  # group-size without pods: no groups
    return [dict(workload), *(dict(action.body) for action in actions if action.body)]


def _stored(workload: Object) -> Object:
    metadata = {**workload["metadata"], "uid": "44444444-0000", "resourceVersion": "7"}
    return {**workload, "metadata": metadata}


def _with_workload(observed: Observed, workload: Object) -> Observed:
    """Return the state once the Workload is stored: its policy counts, no PriorityClass is read."""
    stored = Workload.read(workload)
    return replace(observed, workload=stored, sources=source_of_workload(stored), priority_classes=())

"""Owners and policies for them, drawn by chance: most fit one another, some do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from muster.objects.scheduling import Workload
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
from tests.support.priorities import of_class, seen

NOT_SLOW = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = ("a", "b", "c", "d")
CLASSES = [
    seen("high", 1000),
    seen("urgent", 1000),
    seen("low", 10),
    seen("polite", 10, preemptionPolicy="Never"),
]
"""Two of one value, so that pods may name both in one group; two of another, which may not."""

EXCLUSIVE = annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})


@st.composite
def jobsets(draw: st.DrawFn) -> Object:
    """One to four replicatedJobs with marks of every kind, which may wait for one another."""
    entries: list[Object] = []
    alike, different = ["high", "urgent"], ["", "low", "polite"]
    classes = draw(st.sampled_from([[""], ["polite"], alike, alike, different, different, different]))
    for index in range(draw(st.integers(1, 4))):
        labels = draw(_mark_labels(index))
        modifiers: list[Any] = [template_labelled(labels)]
        if draw(st.integers(0, 9)) == 0:
            modifiers.append(EXCLUSIVE)
        modifiers.append(of_class(draw(st.sampled_from(classes))))
        if draw(st.integers(0, 9)) == 0:
            modifiers.append(template_spec(schedulerName="another-scheduler"))
        entry = a_replicated_job(
            f"job-{index}",
            *modifiers,
            pods=draw(st.integers(0, 4)),
            replicas=draw(st.integers(1, 3)),
            mark=draw(st.sampled_from(NAMES[: index + 1])),
        )
        earlier = [one["name"] for one in entries]
        if earlier and draw(st.integers(0, 2)) == 0:
            status = draw(st.sampled_from(["Ready", "Complete"]))
            entry["dependsOn"] = [{"name": draw(st.sampled_from(earlier)), "status": status}]
        entries.append(entry)
    return a_jobset(*entries)


def _mark_labels(index: int) -> st.SearchStrategy[dict[str, str]]:
    """What stands beside the mark on the template of that number."""
    leads = {group_labels.LEADER_GROUP: f"lead-{index}"}
    return st.sampled_from([{}, {}, {group_labels.GROUP_PER: "job"}, {group_labels.GROUP_SIZE: "2"}, leads])


def marks_of(jobs: list[Object]) -> list[str]:
    """Every group that pods of Jobs, or of Job templates, may be in."""
    found: dict[str, None] = {}
    for job in jobs:
        mark = group_labels.read_group_labels(job["spec"]["template"]["metadata"]["labels"])
        assert mark is not None
        found |= dict.fromkeys(mark.groups)
    return list(found)


_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "schedulingConstraints": st.just({"topology": [{"key": "topology.kubernetes.io/zone"}]}),
        "disruptionMode": st.sampled_from([{"all": {}}, {"single": {}}]),
        # Seldom the other one: it has to be what the pods have.
        "preemptionPolicy": st.sampled_from([*["PreemptLowerPriority"] * 5, "Never"]),
    },
)


def _policy(count: str) -> st.SearchStrategy[dict[str, Any]]:
    gangs = st.integers(1, 3).map(lambda number: {"schedulingPolicy": {"gang": {count: number}}})
    basic: st.SearchStrategy[dict[str, Any]] = st.just({"schedulingPolicy": {"basic": {}}})
    return st.one_of(st.just({}), gangs, basic)


# Made once: strategies are dear to make.
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
    """A group over these names; each part of them is a group of pods or one more group over them."""
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
    return {"name": name, **draw(_SETTINGS), **draw(_POLICY_OF_A_TREE), "groups": groups}


@st.composite
def policies(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """A policy for groups of these names: none, some of them side by side, or a tree over all."""
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
    """The group with something in it that no policy can have."""
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
def worlds(draw: st.DrawFn) -> Observed:
    """A TrainJob with its JobSet, a JobSet, or a Job; their Jobs and a policy on them."""
    kind = draw(st.sampled_from(["JobSet", "JobSet", "JobSet", "TrainJob", "Job"]))
    jobset = None if kind == "Job" else draw(jobsets())
    if jobset is None:
        owner = draw(_jobs())
        jobs = templates = [owner]
    else:
        owner = a_trainjob() if kind == "TrainJob" else jobset
        jobs, templates = jobs_of(jobset), [one["template"] for one in jobset["spec"]["replicatedJobs"]]
        if owner is not jobset:
            owned_by(owner)(jobset)
    sources = (PolicySource(PolicySourceKind.OWNER, "home", draw(policies(marks_of(templates)))),)
    return observed(owner, jobset=jobset, sources=sources, jobs=jobs, priority_classes=tuple(CLASSES))


@st.composite
def _jobs(draw: st.DrawFn) -> Object:
    """A plain Job with a mark of any kind."""
    labels, one_class = draw(_mark_labels(0)), draw(st.sampled_from(["", "low", "polite"]))
    modifiers = template_labelled(labels), of_class(one_class)
    return a_job(*modifiers, pods=draw(st.integers(0, 5)), mark=draw(st.sampled_from(NAMES)))


def jobs_of(jobset: Object) -> list[Object]:
    """All Jobs of a JobSet."""
    return [
        a_child_job(jobset, entry["name"], index)
        for entry in jobset["spec"]["replicatedJobs"]
        for index in range(entry["replicas"])
    ]


def compiled(world: Observed) -> list[Object]:
    """The Workload and the groups that come of a valid policy; nothing where it is not valid."""
    resolved = resolve(world)
    assert isinstance(resolved, ResolvedOwner)
    if resolved.failure is not None:
        return []
    made = plan_workload(world, NOW)
    assert isinstance(made, Plan), made
    (workload,) = (action.body for action in made.actions)
    assert workload is not None
    stored = _stored(dict(workload))
    groups = plan_pod_groups(_with_workload(world, stored), NOW)
    made_groups = groups.actions if isinstance(groups, Plan) else ()  # no pods, in blocks: no groups
    return [dict(workload), *(dict(action.body) for action in made_groups if action.body)]


def _stored(workload: Object) -> Object:
    metadata = {**workload["metadata"], "uid": "44444444-0000", "resourceVersion": "7"}
    return {**workload, "metadata": metadata}


def _with_workload(world: Observed, workload: Object) -> Observed:
    """The world once the Workload is stored: its policy counts, and no PriorityClass is read any more."""
    stored = Workload.read(workload)
    return replace(world, workload=stored, sources=source_of_workload(stored), priority_classes=())

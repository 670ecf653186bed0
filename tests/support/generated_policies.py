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
    for name, value, preemption in (("high", 1000, None), ("urgent", 1000, None), ("polite", 10, "Never"))
]
"""Two of one value, which pods of one group may mix, and one with another preemption policy."""

PER_JOB, BLOCKS = {group_labels.GROUP_PER: "job"}, {group_labels.GROUP_SIZE: "2"}
LABELS: list[dict[str, str]] = [{}, {}, {}, PER_JOB, BLOCKS, BLOCKS | {group_labels.GROUP_PER: "job-block"}]
"""Beside muster.dev/group on a pod template."""


@st.composite
def _jobsets(draw: st.DrawFn) -> Object:
    """Draw a JobSet of one to four replicatedJobs with all kinds of group labels."""
    classes = draw(st.sampled_from([[""], ["polite"], ["high", "urgent"]]))
    entries: list[Object] = []
    for index in range(draw(st.integers(1, 4))):
        leads = {group_labels.LEADER_GROUP: f"lead-{index}"}
        led = [leads, leads | {group_labels.LEADER_GROUP_PER: "job"}]
        entry = a_replicated_job(
            f"job-{index}",
            template_labelled(draw(st.sampled_from([*LABELS, *led]))),
            template_spec(priorityClassName=draw(st.sampled_from(classes))),
            pods=draw(st.integers(0, 4)),
            replicas=draw(st.integers(1, 3)),
            label=draw(st.sampled_from(NAMES[: index + 1])),
            after=(f"job-{index - 1}",) if index and draw(st.integers(0, 5)) == 0 else (),
        )
        entries.append(entry)
    return a_jobset(*entries)


def _groups_of(jobs: list[Object]) -> list[str]:
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
_OPTIONS = st.fixed_dictionaries({}, optional={"onFailure": st.sampled_from(["Basic", "Hold"])})


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
        if level < 4 and draw(st.booleans()):
            groups.append(draw(_tree(part, level + 1)))
        else:
            groups += [draw(_leaf(name)) for name in part]
    name = f"level-{level}-{names[0]}"
    return {"name": name, **draw(_SHAPES), **draw(_SETTINGS), **draw(_POLICY_OF_A_TREE), "groups": groups}


@st.composite
def _policies(draw: st.DrawFn, names: list[str]) -> dict[str, Any]:
    """Draw a policy for groups of these names: empty, a flat list of some, or a tree over all."""
    shape = draw(st.sampled_from(["default", "flat", *["tree"] * 4]))
    if shape == "flat":
        groups = [draw(_leaf(name)) for name in draw(st.lists(st.sampled_from(names), unique=True))]
    else:
        groups = [draw(_tree(names, 1))] if shape == "tree" else []
    return {"workload": {**({"groups": groups} if groups else {}), **draw(_OPTIONS)}}


@st.composite
def observations(draw: st.DrawFn) -> Observed:
    """Draw a TrainJob with its JobSet, a JobSet, or a Job; with its Jobs and a policy."""
    kind = draw(st.sampled_from(["JobSet", "JobSet", "JobSet", "TrainJob", "Job"]))
    jobset: Object | None = None
    if kind == "Job":
        labels = template_labelled(draw(st.sampled_from(LABELS)))
        owner = a_job(labels, pods=draw(st.integers(0, 5)), label=draw(st.sampled_from(NAMES)))
        jobs = templates = [owner]
    else:
        jobset = draw(_jobsets())
        entries = jobset["spec"]["replicatedJobs"]
        owner = a_trainjob() if kind == "TrainJob" else jobset
        templates = [entry["template"] for entry in entries]
        jobs = [
            a_child_job(jobset, one["name"], index) for one in entries for index in range(one["replicas"])
        ]
        if owner is not jobset:
            owned_by(owner)(jobset)
    sources = (PolicySource(PolicySourceKind.OWNER, "home", draw(_policies(_groups_of(templates)))),)
    return observed(owner, jobset=jobset, sources=sources, jobs=jobs, priority_classes=tuple(CLASSES))


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
    metadata = {**workload["metadata"], "uid": "44444444-0000", "resourceVersion": "7"}
    stored = Workload.read({**workload, "metadata": metadata})
    # Once the Workload is stored its policy counts, and no PriorityClass is read.
    later = replace(observed, workload=stored, sources=source_of_workload(stored), priority_classes=())
    groups = plan_pod_groups(later, NOW)
    actions = groups.actions if isinstance(groups, Plan) else ()  # group-size without pods: no groups
    return [dict(workload), *(dict(action.body) for action in actions if action.body)]

"""Property tests: rules that hold for any group labels, JobSets and Jobs."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from tests.support.births import label_at_birth
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_replicated_job,
    observed,
    of_uid,
    pods_of,
    template_labelled,
    with_spec,
)
from tests.support.planning import plan_conditions, plan_pod_groups, plan_resize, plan_workload

FEW = settings(max_examples=60, deadline=None)
NAMES = ("a", "b", "node")


@st.composite
def drawn_group_labels(draw: st.DrawFn) -> dict[str, str]:
    """Labels of a pod template, good and bad ones."""
    optional = {
        group_labels.GROUP_PER: st.sampled_from(["job", "job-block", "pod"]),
        group_labels.GROUP_SIZE: st.sampled_from(["1", "2", "3", "0", "x"]),
        group_labels.LEADER_GROUP: st.sampled_from(["driver", "g", "Bad"]),
        group_labels.LEADER_GROUP_PER: st.sampled_from(["job", "pod"]),
    }
    labels = {key: draw(values) for key, values in optional.items() if draw(st.booleans())}
    group = draw(st.sampled_from(["", "g", "trainer", "none", "Bad"]))
    return labels | ({group_labels.GROUP: group} if group else {})


def _shape(draw: st.DrawFn) -> dict[str, Any]:
    parallelism, completions = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    if draw(st.booleans()):
        return {"parallelism": parallelism, "completions": completions}
    return {
        "parallelism": parallelism,
        "completions": draw(st.sampled_from([None, completions])),
        "completionMode": "NonIndexed",
    }


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Object, list[Object]]:
    """A plain Job as mark-jobs leaves it, and itself as the only Job."""
    job = a_job(template_labelled(draw(drawn_group_labels())), with_spec(**_shape(draw)), label=None)
    group = label_at_birth(job)
    if group:
        template_labelled({group_labels.GROUP: group})(job)
    return job, [job]


@st.composite
def jobsets(draw: st.DrawFn) -> tuple[Object, list[Object]]:
    """A JobSet of up to three replicatedJobs, and all its Jobs."""
    entries = [
        a_replicated_job(
            name,
            template_labelled(draw(drawn_group_labels())),
            with_spec(**_shape(draw)),
            replicas=draw(st.integers(0, 3)),
            step=draw(st.sampled_from(["", "trainer", "dataset-initializer"])),
            after=draw(st.sampled_from([(), ("a",)])) if name != "a" else (),
        )
        for name in NAMES[: draw(st.integers(1, 3))]
    ]
    jobset = a_jobset(*entries)
    children = [
        a_child_job(jobset, entry["name"], index) for entry in entries for index in range(entry["replicas"])
    ]
    return jobset, children


OWNERS = st.one_of(jobs(), jobsets())


def _stored(plan: Plan, kind: str) -> list[Object]:
    manifests = [
        copy.deepcopy(dict(action.body or {})) for action in plan.actions if action.target.kind == kind
    ]
    for body in manifests:
        of_uid(f"{body['metadata']['name']}-uid")(body)
    return manifests


def _all_groups(owner: Object, children: list[Object]) -> list[Object]:
    """The PodGroups after create_workload and create_pod_groups have run."""
    first = plan_workload(observed(owner, jobs=children), NOW)
    if isinstance(first, NoOp):
        return []
    workloads = _stored(first, "Workload")
    if not workloads:
        return _stored(first, "PodGroup")  # it gave up
    second = plan_pod_groups(observed(owner, jobs=children, workload=workloads[0]), NOW)
    return _stored(second, "PodGroup") if isinstance(second, Plan) else []


@FEW
@given(OWNERS)
def test_every_stamped_pod_has_its_pod_group(drawn: tuple[Object, list[Object]]) -> None:
    """What stamp-pods writes on pods is what the functions make, whatever the group labels."""
    owner, children = drawn
    made = {body["metadata"]["name"] for body in _all_groups(owner, children)}
    pods = [pod for job in children for pod in pods_of(job)]
    named = {
        pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods if "schedulingGroup" in pod["spec"]
    }
    assert named <= made


def _most_at_once(children: list[Object]) -> Counter[str]:
    """How many pods of each PodGroup there ever are at once: of each Job no more than its parallelism."""
    most: Counter[str] = Counter()
    for job in children:
        spec = job["spec"]
        completions = spec["parallelism"] if spec["completions"] is None else spec["completions"]
        groups = [a_pod(job, index)["spec"].get("schedulingGroup") for index in range(completions)]
        names = Counter(group["podGroupName"] for group in groups if group)
        most.update({name: min(count, spec["parallelism"]) for name, count in names.items()})
    return most


@FEW
@given(OWNERS)
def test_no_gang_asks_for_more_pods_than_there_are(drawn: tuple[Object, list[Object]]) -> None:
    """A minCount above the pods that there ever are at once would never be met."""
    owner, children = drawn
    most = _most_at_once(children)
    for body in _all_groups(owner, children):
        gang = body["spec"]["schedulingPolicy"].get("gang")
        assert gang is None or gang["minCount"] <= max(1, most[body["metadata"]["name"]])


@FEW
@given(OWNERS)
def test_planning_is_pure(drawn: tuple[Object, list[Object]]) -> None:
    """The same observation gives the same plan and is left as it was."""
    owner, children = drawn
    pods = [pod for job in children for pod in pods_of(job)]
    seen = observed(owner, jobs=children, groups=_all_groups(owner, children), pods=pods)
    before = copy.deepcopy(seen)
    for plan in (plan_workload, plan_pod_groups, plan_resize, plan_conditions):
        assert plan(seen, NOW) == plan(copy.deepcopy(seen), NOW)
        assert seen == before


@FEW
@given(OWNERS)
def test_a_second_run_plans_nothing(drawn: tuple[Object, list[Object]]) -> None:
    """Once the objects exist there is nothing left to make or to resize."""
    owner, children = drawn
    first = plan_workload(observed(owner, jobs=children), NOW)
    workloads = _stored(first, "Workload") if isinstance(first, Plan) else []
    if workloads:
        groups = _all_groups(owner, children)
        again = observed(owner, jobs=children, workload=workloads[0], groups=groups)
        assert [type(plan(again, NOW)) for plan in (plan_workload, plan_pod_groups, plan_resize)] == [
            NoOp
        ] * 3

"""Property tests: groups of groups per Job and block are complete, consistent, and stay so."""

from __future__ import annotations

import copy
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan, Verb
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import NOW, Object, a_child_job, pods_of, with_status
from tests.support.generated_policies import NOT_SLOW
from tests.support.generated_replicas import replicas
from tests.support.planning import plan_resize, resolve
from tests.support.replicas import created, jobs_of, of_kind, seen, with_groups

Drawn = tuple[Object, dict[str, Any]]
FEW = settings(NOT_SLOW, max_examples=30)


def pods_by_group(jobs: list[Object]) -> dict[str, list[Object]]:
    """The pods of Jobs by the PodGroup that stamp-pods names."""
    pods: defaultdict[str, list[Object]] = defaultdict(list)
    for job in jobs:
        for pod in pods_of(job):
            pods[pod["spec"]["schedulingGroup"]["podGroupName"]].append(pod)
    return pods


def above(bodies: list[Object]) -> dict[str, str]:
    """The name of the group above each group."""
    return {body["metadata"]["name"]: body["spec"].get("parentCompositePodGroupName", "") for body in bodies}


def count(body: Object) -> int:
    """The minCount or minGroupCount."""
    return int(next(iter(body["spec"]["schedulingPolicy"]["gang"].values())))


def counts_are_those_of(bodies: list[Object], pods: Mapping[str, int]) -> None:
    """Each gang needs its pods, or its children that have pods; at least one of either."""
    parents = above(bodies)
    children = defaultdict(list)
    for name, parent in parents.items():
        children[parent].append(name)

    def members(name: str) -> int:
        below = children[name]
        return sum(members(child) > 0 for child in below) if below else pods.get(name, 0)

    for body in bodies:
        assert count(body) == max(1, members(body["metadata"]["name"])), body["metadata"]["name"]


def test_every_tree_is_complete() -> None:
    """Names are unique, parents come first, every pod's group is there, and counts add up."""
    seen_shapes: Counter[tuple[bool, bool]] = Counter()

    @FEW
    @given(replicas())
    def check(drawn: Drawn) -> None:
        jobset, policy = drawn
        resolved = resolve(seen(jobset, policy))
        assert isinstance(resolved, ResolvedOwner)
        assert resolved.failure is None, resolved.failure
        _, bodies = created(jobset, policy)
        names = [body["metadata"]["name"] for body in bodies]
        assert len(set(names)) == len(names)
        assert set(names) == {*resolved.composite_names(), *(name for *_, name in resolved.pod_groups())}
        for position, name in enumerate(names):
            assert above(bodies)[name] in {"", *names[:position]}
        pods = pods_by_group(jobs_of(jobset))
        assert set(pods) <= {body["metadata"]["name"] for body in of_kind("PodGroup", bodies)}
        counts_are_those_of(bodies, {name: len(found) for name, found in pods.items()})
        seen_shapes.update(
            (group.shape.per_job, group.shape.size > 0)
            for root in resolved.tree
            for group in root.composites()
        )

    check()
    assert len(seen_shapes) == 4, seen_shapes


@FEW
@given(replicas())
def test_the_pods_below_a_group_are_of_its_job_and_block(drawn: Drawn) -> None:
    """Whatever the levels between: the suffix of a group is true of each pod below it."""
    jobset, policy = drawn
    resolved = resolve(seen(jobset, policy))
    assert isinstance(resolved, ResolvedOwner)
    workload, bodies = created(jobset, policy)
    assert workload
    parents = above(bodies)
    templates = {body["metadata"]["name"]: body["spec"]["workloadRef"]["templateName"] for body in bodies}
    for name, pods in pods_by_group(jobs_of(jobset)).items():
        parent = parents[name]
        while parent:
            group = resolved.groups[templates[parent]]
            for pod in pods:
                labels = pod["metadata"]["labels"]
                suffix = group.shape.suffix(
                    group_labels.job_index(labels), group_labels.completion_index(labels)
                )
                assert parent == resolved.pod_sets.pod_group_name(group.name, suffix)
            parent = parents[parent]


def applied(bodies: list[Object], decision: Plan | NoOp) -> list[Object]:
    """The groups after a resize."""
    now = {body["metadata"]["name"]: copy.deepcopy(body) for body in bodies}
    for action in decision.actions if isinstance(decision, Plan) else ():
        if action.target.kind == "Workload":
            continue
        name = action.target.name
        if action.verb == Verb.DELETE:
            assert action.target.uid == now.pop(name)["metadata"]["uid"]
        elif action.verb == Verb.CREATE:
            assert name not in now
            assert action.body is not None
            now[name] = copy.deepcopy(dict(action.body))
            now[name]["metadata"] |= {"uid": f"{name}-uid", "resourceVersion": "2"}
        else:
            assert action.body is not None
            now[name]["spec"]["schedulingPolicy"] = dict(action.body["spec"]["schedulingPolicy"])
    return list(now.values())


@FEW
@given(drawn=replicas(), data=st.data())
def test_a_tree_stays_right_while_jobs_end(drawn: Drawn, data: st.DataObject) -> None:
    """After a resize the counts are those of what is left; names and parents are as before."""
    jobset, policy = drawn
    stored = created(jobset, policy)
    jobs, left = [], []
    for entry in jobset["spec"]["replicatedJobs"]:
        for index in range(entry["replicas"]):
            job = a_child_job(jobset, entry["name"], index)
            done = data.draw(st.integers(0, max(0, job["spec"]["completions"])))
            indexes = f"0-{done - 1}" if done else ""
            jobs.append(a_child_job(jobset, entry["name"], index, with_status(completedIndexes=indexes)))
            left += pods_of(job)[done:]
    after = applied(stored[1], plan_resize(with_groups(jobset, policy, stored, jobs=jobs), NOW))
    assert above(after) == above(stored[1])
    sizes = Counter(pod["spec"]["schedulingGroup"]["podGroupName"] for pod in left)
    counts_are_those_of(after, sizes)
    again = plan_resize(with_groups(jobset, policy, (stored[0], after), jobs=jobs), NOW)
    assert not isinstance(again, Plan) or {action.target.kind for action in again.actions} == {"Workload"}
    back = applied(after, plan_resize(with_groups(jobset, policy, (stored[0], after)), NOW))
    assert {body["metadata"]["name"]: count(body) for body in back} == {
        body["metadata"]["name"]: count(body) for body in stored[1]
    }

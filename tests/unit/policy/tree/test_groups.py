"""The groups of an owner and their numbers of pods, from the JobSet or Job, never from numNodes."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.reasons import Reason
from muster.policy.tree.groups import Group, default_tree
from muster.policy.tree.validation import TEMPLATE_LIMIT, validate_tree
from tests.support.builders import (
    Modifier,
    Object,
    a_job,
    a_jobset,
    a_replicated_job,
    annotated,
    template_labelled,
    template_spec,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import pod_sets_of

ENABLED = {group_labels.NAMESPACE_SWITCH: "enabled"}


def gang(body: Object, labels: dict[str, str] | None = None) -> OwnerPodSets:
    """The planner's view of a JobSet or Job in an enabled namespace."""
    labels = ENABLED if labels is None else labels
    if body["kind"] == "Job":
        return pod_sets_of(Job.read(body), None, labels)
    jobset = JobSet.read(body)
    return pod_sets_of(jobset, jobset, labels)


def described(tree: tuple[Group, ...]) -> dict[str, Any]:
    """A tree in few words: `gang` or `basic`, and the pods by name suffix."""
    return {group.name: ("gang" if group.gang else "basic", dict(group.sizes)) for group in tree}


def one(kind: str, pods: int) -> tuple[str, dict[str, int]]:
    """A group with one PodGroup."""
    return kind, {"": pods}


PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
BLOCKS_OF_TWO = template_labelled({group_labels.GROUP_SIZE: "2"})
LEADER = template_labelled({group_labels.LEADER_GROUP: "driver"})
WORK_QUEUE = with_spec(completionMode="NonIndexed", completions=None)


@pytest.mark.parametrize(
    ("body", "groups"),
    [
        pytest.param(a_job(), {"main": one("gang", 2)}, id="a Job is one gang"),
        pytest.param(
            a_jobset(a_replicated_job("a", pods=3, replicas=2)),
            {"a": one("gang", 6)},
            id="all Jobs of a replicatedJob are one gang",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", PER_JOB, pods=3, replicas=2, label="g")),
            {"g": ("gang", {"-0": 3, "-1": 3})},
            id="or each Job one of its own",
        ),
        pytest.param(
            a_job(BLOCKS_OF_TWO, pods=5),
            {"main": ("gang", {"-0": 2, "-1": 2, "-2": 1})},
            id="the last block of completion indexes may be smaller",
        ),
        pytest.param(
            a_job(LEADER, pods=3),
            {"driver": one("gang", 1), "main": one("gang", 2)},
            id="a leader is in a group of its own",
        ),
        pytest.param(
            a_job(LEADER, with_spec(parallelism=3, completions=6)),
            {"driver": one("gang", 1), "main": one("gang", 2)},
            id="the leader takes one of the pods at once, so the workers cannot ask for all of them",
        ),
        pytest.param(
            a_job(LEADER, with_spec(parallelism=1, completions=3)),
            {"driver": one("gang", 1), "main": one("gang", 0)},
            id="where it takes the only one, no worker ever runs beside it",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", LEADER, pods=3, replicas=2, label="g")),
            {"driver": one("gang", 2), "g": one("gang", 4)},
            id="the leaders of all Jobs share their group",
        ),
        pytest.param(
            a_job(LEADER, BLOCKS_OF_TWO, pods=4),
            {"driver": one("gang", 1), "main": ("gang", {"-0": 1, "-1": 2})},
            id="the first block is one short of its leader",
        ),
        pytest.param(
            a_job(with_spec(parallelism=2, completions=5)),
            {"main": one("gang", 2)},
            id="never more than run at once",
        ),
        pytest.param(
            a_job(with_spec(parallelism=5, completions=2)),
            {"main": one("gang", 2)},
            id="nor more than completions",
        ),
        pytest.param(
            a_job(WORK_QUEUE, pods=3), {"main": one("gang", 3)}, id="a work queue counts its parallelism"
        ),
        pytest.param(
            a_job(with_spec(completionMode="NonIndexed"), BLOCKS_OF_TWO, pods=3),
            {"main": ("gang", {"-0": 3})},
            id="pods without an index are all in block 0",
        ),
        pytest.param(
            a_job(with_spec(completionMode="NonIndexed"), LEADER, pods=3),
            {"driver": one("gang", 3), "main": ("gang", {})},
            id="pods without an index are all leaders",
        ),
        pytest.param(a_job(pods=0), {"main": one("gang", 0)}, id="a Job of no pods has its group already"),
        pytest.param(
            a_job(BLOCKS_OF_TWO, pods=0), {"main": ("gang", {})}, id="also where no block exists yet"
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", pods=1, label="g"), a_replicated_job("b", pods=3, label="g")),
            {"g": one("gang", 4)},
            id="replicatedJobs with one group label share a group",
        ),
        pytest.param(
            a_jobset(
                a_replicated_job("a", label="g", step="dataset-initializer"),
                a_replicated_job("b", label="g", step="model-initializer"),
            ),
            {"g": one("basic", 4)},
            id="initializers that share a group stay basic",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a"), a_replicated_job("b", label="none")),
            {"a": one("gang", 2)},
            id="an opted-out template is in no group",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a"), a_replicated_job("b", with_spec(scheduling={}))),
            {"a": one("gang", 2)},
            id="nor one whose Jobs ask the Job controller",
        ),
        pytest.param(
            a_jobset(a_replicated_job("a", template_labelled({group_labels.GROUP_PER: "job"}), replicas=2)),
            {"a": ("gang", {"-0": 2, "-1": 2})},
            id="mark-jobs adds to existing labels, so group-per counts without a group label",
        ),
    ],
)
def test_groups(body: Object, groups: dict[str, Any]) -> None:
    """The group labels of the pod templates make the groups; their counts are the pods that run at once."""
    assert described(default_tree(gang(body))) == groups


def _failure(*entries: Object, modifiers: tuple[Modifier, ...] = ()) -> GroupingFailure | None:
    return validate_tree(default_tree(gang(a_jobset(*entries, modifiers=modifiers))))


def test_nine_groups_are_too_many() -> None:
    """A Workload has room for eight templates."""
    entries = [a_replicated_job(f"r{number}") for number in range(9)]
    assert _failure(*entries[:8]) is None
    failure = _failure(*entries)
    assert failure is not None
    assert failure.reason == Reason.TOO_MANY_GROUPS
    assert mentions(failure.message, *(f"r{number}" for number in range(9)), TEMPLATE_LIMIT)


IN_ORDER = with_spec(startupPolicy={"startupPolicyOrder": "InOrder"})
A, B, C = (f"spec.replicatedJobs[{number}].template.spec.template" for number in range(3))


@pytest.mark.parametrize(
    ("entries", "modifiers", "reason", "facts"),
    [
        pytest.param(
            (a_replicated_job("a", label="g"), a_replicated_job("b", label="g", after=("a",))),
            (),
            Reason.WAITS_FOR_ITSELF,
            ("g", A, B),
            id="a gang over replicatedJobs that wait for each other never starts",
        ),
        pytest.param(
            (a_replicated_job("a", label="g"), a_replicated_job("b", label="g")),
            (IN_ORDER,),
            Reason.WAITS_FOR_ITSELF,
            ("g", A, B),
            id="InOrder waits as dependsOn does",
        ),
        pytest.param(
            (
                a_replicated_job("a", label="g"),
                a_replicated_job("m", after=("a",)),
                a_replicated_job("b", label="g", after=("m",)),
            ),
            (),
            Reason.WAITS_FOR_ITSELF,
            ("g", A, C),
            id="waiting goes through a third",
        ),
        pytest.param(
            (a_replicated_job("a"), a_replicated_job("b", after=("a",))),
            (),
            None,
            (),
            id="groups of their own may wait for each other",
        ),
        pytest.param(
            (
                a_replicated_job("a", label="g", step="dataset-initializer"),
                a_replicated_job("b", label="g", step="model-initializer", after=("a",)),
            ),
            (),
            None,
            (),
            id="a basic group may wait for itself",
        ),
        pytest.param(
            (
                a_replicated_job("a", template_spec(priorityClassName="hi"), label="g"),
                a_replicated_job("b", label="g"),
            ),
            (),
            Reason.PRIORITIES_DIFFER,
            ("g", A, B, "priorityClassName", "hi"),
            id="pods of one group need one priority class",
        ),
        pytest.param(
            (a_replicated_job("a", template_spec(priorityClassName="hi")), a_replicated_job("b")),
            (),
            None,
            (),
            id="groups of one owner may have different ones",
        ),
        pytest.param(
            (
                a_replicated_job("a", template_spec(schedulerName="mine"), label="g"),
                a_replicated_job("b", label="g"),
            ),
            (),
            Reason.SCHEDULERS_DIFFER,
            ("g", A, B, "schedulerName", "default-scheduler", "mine"),
            id="pods of one group need one scheduler",
        ),
        pytest.param(
            (a_replicated_job("a"),),
            (annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}),),
            Reason.EXCLUSIVE_PLACEMENT,
            ("a", A),
            id="exclusive placement lets no gang start",
        ),
        pytest.param(
            (a_replicated_job("a"),),
            (
                annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}),
                annotated({"alpha.jobset.sigs.k8s.io/node-selector": "true"}),
            ),
            None,
            (),
            id="exclusive placement by node selector does not wait",
        ),
    ],
)
def test_flaws(
    entries: tuple[Object, ...],
    modifiers: tuple[Modifier, ...],
    reason: Reason | None,
    facts: tuple[str, ...],
) -> None:
    """Groups that can never be placed are reported with the paths of the templates."""
    failure = _failure(*entries, modifiers=modifiers)
    assert (failure and failure.reason) == reason
    if failure:
        assert mentions(failure.message, *facts)

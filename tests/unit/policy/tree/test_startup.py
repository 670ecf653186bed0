"""Whether groups can start although replicatedJobs depend on one another."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.owners.jobset import JobSet
from muster.policy.reasons import Reason
from muster.policy.sources import schema
from muster.policy.tree.policy_tree import policy_tree
from muster.policy.tree.validation import validate_tree
from tests.support.builders import Object, a_jobset, a_replicated_job, annotated, template_labelled
from tests.support.messages import mentions
from tests.support.planning import pod_sets_of

EXCLUSIVE = annotated({"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})
LEADER = template_labelled({group_labels.LEADER_GROUP: "lead"})
BLOCKS = template_labelled({group_labels.GROUP_SIZE: "2"})
PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})


def ready(entry: Object, *after: str) -> Object:
    """The entry, after others are ready."""
    return {**entry, "dependsOn": [{"name": name, "status": "Ready"} for name in after]}


def entry(name: str, label: str, *modifiers: Any, **fields: Any) -> Object:
    """A replicatedJob of two pods with a group label."""
    return a_replicated_job(name, *modifiers, label=label, **fields)


def outcome(groups: str, *entries: Object) -> GroupingFailure | None:
    """What is wrong, or None."""
    jobset = JobSet.read(a_jobset(*entries))
    policy = schema.parse(f"workload: {{groups: {groups}}}").workload
    assert policy is not None
    tree = policy_tree(pod_sets_of(jobset, jobset, {}), policy, "home")
    return tree if isinstance(tree, GroupingFailure) else validate_tree(tree)


ROOT = "[{name: root, schedulingPolicy: %s, groups: [{name: a}, {name: b}, {name: c}]}]"
STAGES_BESIDE = (
    "[{name: root, groups: ["
    "{name: stages, schedulingPolicy: %s, groups: [{name: a}, {name: b}]}, {name: c}]}]"
)
GANG_OF = "{gang: {minGroupCount: %s}}"


@pytest.mark.parametrize(
    ("groups", "entries", "reason", "facts"),
    [
        pytest.param(
            ROOT % (GANG_OF % 2),
            [entry("a", "a"), entry("b", "b"), ready(entry("c", "c"), "a")],
            None,
            (),
            id="two of three run, and the third comes when one of them is ready",
        ),
        pytest.param(
            ROOT % (GANG_OF % 3),
            [entry("a", "a"), entry("b", "b"), ready(entry("c", "c"), "a")],
            Reason.INVALID_POLICY,
            ("home", "workload.groups[0].schedulingPolicy", 2, "c"),
            id="all three are asked for, but the third waits for one of the others",
        ),
        pytest.param(
            ROOT % (GANG_OF % 2),
            [entry("a", "a"), entry("b", "b"), entry("c", "c", after=("a", "b"))],
            Reason.INVALID_POLICY,
            ("home", "workload.groups[0].schedulingPolicy", 1, "c"),
            id="when the third starts, both others have ended and count no longer",
        ),
        pytest.param(
            ROOT % (GANG_OF % 1),
            [entry("a", "a"), entry("b", "b", after=("a",)), entry("c", "c", after=("b",))],
            None,
            (),
            id="one at a time is enough",
        ),
        pytest.param(
            STAGES_BESIDE % "{basic: {}}",
            [entry("a", "a"), entry("b", "b", after=("a",)), entry("c", "c")],
            None,
            (),
            id="stages below a basic group, of which the first is enough for the gang above",
        ),
        pytest.param(
            STAGES_BESIDE % (GANG_OF % 2),
            [entry("a", "a"), entry("b", "b", after=("a",)), entry("c", "c")],
            Reason.INVALID_POLICY,
            ("home", "workload.groups[0].groups[0].schedulingPolicy", 1, "b"),
            id="stages below a gang, which is never complete",
        ),
        pytest.param(
            "[{name: x}, {name: y}]",
            [
                entry("a1", "x"),
                entry("b1", "y"),
                ready(entry("a2", "x"), "b1"),
                ready(entry("b2", "y"), "a1"),
            ],
            Reason.WAITS_FOR_ITSELF,
            ("x", 4, 2, "a2"),
            id="two gangs, each of which waits for the other",
        ),
        pytest.param(
            "[{name: x}, {name: y}]",
            [entry("a1", "x"), entry("b1", "y"), ready(entry("a2", "x"), "b1")],
            None,
            (),
            id="a gang that waits for another, which waits for none",
        ),
        pytest.param(
            "[]",
            [entry("w", "w", EXCLUSIVE, LEADER)],
            None,
            (),
            id="exclusive placement with the leader in a group of its own",
        ),
        pytest.param(
            "[]",
            [entry("w", "w", EXCLUSIVE)],
            Reason.EXCLUSIVE_PLACEMENT,
            ("w", "spec.replicatedJobs[0].template.spec.template"),
            id="exclusive placement with the leader in the gang",
        ),
        pytest.param(
            "[]",
            [entry("w", "w", EXCLUSIVE, PER_JOB, pods=1, replicas=3)],
            None,
            (),
            id="exclusive placement of Jobs of one pod each: all of them lead",
        ),
        pytest.param(
            "[{name: w, schedulingPolicy: {gang: {minCount: 2}}}]",
            [entry("w", "w", EXCLUSIVE, replicas=2)],
            None,
            (),
            id="exclusive placement of two Jobs, whose two leaders are gang enough",
        ),
        pytest.param(
            "[]",
            [entry("w", "w", EXCLUSIVE, BLOCKS, pods=4)],
            Reason.EXCLUSIVE_PLACEMENT,
            ("w", "spec.replicatedJobs[0].template.spec.template"),
            id="exclusive placement in blocks: the first block waits for its own index 0",
        ),
    ],
)
def test_groups_that_can_start(
    groups: str,
    entries: list[Object],
    reason: Reason | None,
    facts: tuple[object, ...],
) -> None:
    """What needs all of its parts is not laid over parts that wait for one another; all else may be."""
    failure = outcome(groups, *entries)
    assert (failure and failure.reason) == reason
    if failure:
        assert mentions(failure.message, *facts)

"""What `muster run` shows: trees with nodes, activities in a line, short reports."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from muster.local import display
from muster.local.stories import Check, StoryRun, story_named
from muster.replay.activity import Activity
from tests.support import builders as b

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"


def an_activity(**changed: Any) -> Activity:
    """A patch_pods that lifted gates two seconds after the beginning."""
    fields: dict[str, Any] = {
        "at": 2.0,
        "step": "patch_pods",
        "trigger": "add",
        "about": "PodGroup indexed-job/llama-main-33333333",
        "outcome": "done",
        "reason": "GatesLifted",
        "message": "4 pods",
        "actions": 4,
        "status": 202,
        "milliseconds": 1.0,
    }
    return Activity(**fields | changed)


def a_tree(*nodes: str, status: str = "True", reason: str = "Scheduled") -> list[Any]:
    """A Job with a condition, its PodGroup, and a pod on each node; "" stands for a gated pod."""
    job = b.a_job(b.with_condition("muster.dev/PodGroupsScheduled", status, reason))
    reference = {"workloadName": "llama", "templateName": "main"}
    group = b.a_pod_group(GROUP, b.owned_by(job), b.with_spec(workloadRef=reference))
    pods = [
        b.a_pod(
            job,
            index,
            b.stamped(GROUP),
            b.with_spec(nodeName=node, schedulingGates=[] if node else [{"name": GATE}]),
        )
        for index, node in enumerate(nodes)
    ]
    return [job, group, *pods]


@pytest.mark.parametrize(
    ("objects", "owner", "group"),
    [
        pytest.param(
            a_tree("node-2", "node-1", "node-2"),
            ("Job team-a/llama  Scheduled", display.GOOD),
            ("gang main 3/3 on node-1, node-2 x2", display.GOOD),
            id="placed",
        ),
        pytest.param(
            a_tree("", "", status="False", reason="Unschedulable"),
            ("Job team-a/llama  Unschedulable", display.BAD),
            ("gang main 0/2 pods have a node, 2 gated", display.WAITING),
            id="refused",
        ),
        pytest.param(
            a_tree("node-1", "node-1", status="False", reason="Unschedulable"),
            ("Job team-a/llama  placed, its condition follows", display.WAITING),
            ("gang main 2/2 on node-1 x2", display.GOOD),
            id="placed a moment after it was refused",
        ),
    ],
)
def test_a_tree_has_the_condition_of_the_owner_and_the_nodes_of_each_group(
    objects: list[Any], owner: tuple[str, str], group: tuple[str, str]
) -> None:
    """Each with a mark."""
    (tree,) = display.owner_trees(objects)
    (branch,) = tree.children
    assert ((tree.text, tree.mark), (branch.text, branch.mark)) == (owner, group)


class _Listener:
    """What a story run needs of a recorder."""

    def objects(self, _namespace: str = "") -> list[Any]:
        return a_tree("node-1", "node-1")


def a_run(*checks: Check) -> StoryRun:
    """A story that ended."""
    run = StoryRun(story_named("indexed-job"), None, _Listener(), list(checks), began=1.0)  # type: ignore[arg-type]
    run.ended = 3.0
    return run


def printed(renderable: Any) -> list[str]:
    """The lines of a renderable on a terminal."""
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(renderable)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined, no-any-return]


PASSED, FAILED = Check("it holds", passed=True), Check("it does not hold", passed=False, detail="because")


def test_a_report_has_a_few_lines() -> None:
    """Headline, tree, number of checks, writes by function; nothing of other stories."""
    other = an_activity(about="PodGroup torch/x", actions=9)
    lines = printed(display.story_report(a_run(PASSED), [an_activity(), other], every_check=False))
    assert lines == [
        "✔ indexed-job: a plain Indexed Job of four pods  2.0 s",
        "Job team-a/llama  Scheduled ✔",
        "└── gang main 2/2 on node-1 x2 ✔",
        "  1 checks passed",
        "  writes: patch_pods 4",
        "",
    ]


def test_a_report_names_the_checks_that_failed() -> None:
    """With the details; those that passed only where every check is asked for."""
    failed = printed(display.story_report(a_run(PASSED, FAILED), [], every_check=False))
    assert failed[0].startswith("✘ indexed-job")
    assert [line for line in failed if "hold" in line] == ["  ✘ it does not hold (because)"]
    every = printed(display.story_report(a_run(PASSED, FAILED), [], every_check=True))
    assert [line.strip()[0] for line in every if "hold" in line] == ["✔", "✘"]

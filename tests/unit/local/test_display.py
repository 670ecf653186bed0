"""What `muster run` shows: trees with nodes, and short reports."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from muster.local import display
from muster.local.stories.story import STORIES, Check, StoryRun
from muster.replay.activity import Activity
from tests.support import builders as b

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"


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


REFUSED = a_tree("", "", status="False", reason="Unschedulable")
b.with_condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "no room")(REFUSED[1])


@pytest.mark.parametrize(
    ("objects", "owner", "group"),
    [
        pytest.param(
            REFUSED,
            "Job team-a/llama  Unschedulable ✘",
            "gang main 0/2 pods have a node, 2 gated: no room …",
            id="refused",
        ),
        pytest.param(
            a_tree("node-1", "node-1", status="False", reason="Unschedulable"),
            "Job team-a/llama  Scheduled ✔",
            "gang main 2/2 on node-1 x2 ✔",
            id="placed a moment after it was refused",
        ),
    ],
)
def test_a_tree_has_the_condition_of_the_owner_and_the_nodes_of_each_group(
    objects: list[Any], owner: str, group: str
) -> None:
    """Each with a mark."""
    (tree,) = display.owner_trees(objects)
    (branch,) = tree.children
    assert (str(tree.label), str(branch.label)) == (owner, group)


class _Listener:
    """What a story run needs of a recorder."""

    def objects(self, _namespace: str = "") -> list[Any]:
        return a_tree("node-2", "node-1", "node-2")


def test_a_report_has_a_few_lines() -> None:
    """Headline, tree, checks that failed, writes by function; nothing of other stories."""
    checks = [Check("it holds", passed=True), Check("it does not hold", passed=False, detail="because")]
    run = StoryRun(STORIES["indexed-job"], None, _Listener(), checks, began=1.0)  # type: ignore[arg-type]
    run.ended = 3.0
    lifted, reason = "PodGroup indexed-job/llama-main-33333333", "GatesLifted"
    activities = [
        Activity(2.0, "patch_pods", "add", about, "done", reason, "4 pods", 4)
        for about in (lifted, "PodGroup torch/x")
    ]
    output = io.StringIO()
    console = Console(file=output, width=80, highlight=False)
    console.print(display.story_report(run, activities, every_check=False))
    assert output.getvalue().splitlines() == [
        "✘ indexed-job: a plain Indexed Job of four pods  2.0 s",
        "Job team-a/llama  Scheduled ✔",
        "└── gang main 3/3 on node-1, node-2 x2 ✔",
        "  ✘ it does not hold (because)",
        "  writes: patch_pods 4",
        "",
    ]

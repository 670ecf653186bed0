"""What `muster run` shows: trees with nodes, activities on wide and narrow terminals, short reports."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from muster.local import display
from muster.local.followers import Lines, LiveView
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
        "message": "4 pods of PodGroup indexed-job/llama-main-33333333, and, as it is long, more words",
        "actions": 4,
        "status": 202,
        "milliseconds": 1.0,
        **changed,
    }
    return Activity(**fields)


def a_member(index: int, *modifiers: b.Modifier) -> Any:
    """A pod of the Job's group."""
    return b.a_pod(b.a_job(), index, b.stamped(GROUP), b.named(f"llama-{index}"), *modifiers)


def on_node(name: str) -> b.Modifier:
    """Bind a pod to a node; "" leaves it without one."""
    return b.with_spec(nodeName=name, schedulingGates=[])


def a_group(owner: Any) -> Any:
    """The PodGroup of the Job's only template."""
    reference = {"workloadName": "llama", "templateName": "main"}
    return b.a_pod_group(GROUP, b.owned_by(owner), b.with_spec(workloadRef=reference))


def a_condition(status: str, reason: str) -> b.Modifier:
    """The Job's condition about its pods."""
    return b.with_condition("muster.dev/PodGroupsScheduled", status, reason)


def group_text(*pods: Any, job: Any = None) -> display.Branch:
    """The branch of the only group."""
    owner = job or b.a_job()
    (tree,) = display.owner_trees([owner, a_group(owner), *pods])
    (branch,) = tree.children
    return branch


class TestTrees:
    """The tree of an owner."""

    def test_a_placed_group_names_its_nodes(self) -> None:
        """With the number of pods where there are several on one."""
        pods = [
            a_member(0, on_node("node-2")),
            a_member(1, on_node("node-1")),
            a_member(2, on_node("node-2")),
        ]
        branch = group_text(*pods)
        assert (branch.text, branch.mark) == ("gang main 3/3 on node-1, node-2 x2", display.GOOD)

    def test_a_waiting_group_shows_its_gated_pods(self) -> None:
        """And that no pod has a node."""
        branch = group_text(a_member(0, b.gated(GATE)), a_member(1, b.gated(GATE)))
        assert (branch.text, branch.mark) == ("gang main 0/2 pods have a node, 2 gated", display.WAITING)

    @pytest.mark.parametrize(
        ("condition", "node", "text", "mark"),
        [
            (("True", "Scheduled"), "node-1", "Job team-a/llama  Scheduled", display.GOOD),
            (("False", "Unschedulable"), "", "Job team-a/llama  Unschedulable", display.BAD),
            (("False", "WaitingForPods"), "", "Job team-a/llama  WaitingForPods", display.WAITING),
        ],
    )
    def test_the_owner_has_the_reason_of_its_condition(
        self, condition: tuple[str, str], node: str, text: str, mark: str
    ) -> None:
        """As Muster wrote it."""
        job = b.a_job(a_condition(*condition))
        pods = [a_member(index, on_node(node)) for index in (0, 1)]
        (tree,) = display.owner_trees([job, a_group(job), *pods])
        assert (tree.text, tree.mark) == (text, mark)

    def test_a_refusal_from_before_is_not_shown_of_placed_pods(self) -> None:
        """The condition follows the pods by a moment."""
        job = b.a_job(a_condition("False", "Unschedulable"))
        pods = [a_member(index, on_node("node-1")) for index in (0, 1)]
        (tree,) = display.owner_trees([job, a_group(job), *pods])
        assert "Unschedulable" not in tree.text
        assert tree.mark == display.WAITING


class TestActivities:
    """The lines of an activity."""

    def test_on_a_wide_terminal_it_is_one_line(self) -> None:
        """From FOLD columns on."""
        (line,) = display.activity_lines(an_activity(), 0.0, display.FOLD)
        assert line.startswith("   2.00s ✔ patch_pods         PodGroup indexed-job/llama-main-33333333 add")
        assert "GatesLifted: 4 pods" in line

    def test_on_a_narrow_one_its_result_stands_below_it(self) -> None:
        """No line is wider than the terminal, and no name is cut."""
        head, *result = display.activity_lines(an_activity(), 0.0, 80)
        assert head == "   2.00s ✔ patch_pods         PodGroup indexed-job/llama-main-33333333 add"
        assert max(map(len, [head, *result])) <= 80
        assert " ".join(" ".join(result).split()) == f"GatesLifted: {an_activity().message}"

    def test_in_the_live_view_it_has_two_lines(self) -> None:
        """A result that is cut says so."""
        _, result = display.activity_lines(an_activity(), 0.0, 80, short=True)
        assert result.endswith("…")
        assert len(result) <= 80

    def test_an_event_that_is_delivered_again_says_so(self) -> None:
        """Without the words of the refusal."""
        again = an_activity(outcome="requeue", reason="AwaitingPodGroup", actions=0)
        (line,) = display.activity_lines(again, 0.0, 160)
        assert line.endswith("AwaitingPodGroup, the event is delivered again")


class _EmptyRecorder:
    """What a story run needs of a recorder."""

    def objects(self, _namespace: str = "") -> list[Any]:
        job = b.a_job(a_condition("True", "Scheduled"))
        return [job, a_group(job), *(a_member(i, on_node("node-1")) for i in (0, 1))]


def a_run(*checks: Check) -> StoryRun:
    """A story that ended."""
    run = StoryRun(story_named("indexed-job"), None, _EmptyRecorder(), list(checks), began=1.0)  # type: ignore[arg-type]
    run.ended = 3.0
    return run


def printed(renderable: Any, columns: int = 80) -> list[str]:
    """The lines of a renderable on a terminal."""
    console = Console(file=io.StringIO(), width=columns, highlight=False)
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


class TestFollowing:
    """After the stories one's own jobs are shown."""

    def test_lines_report_a_placed_job_once(self) -> None:
        """Once, and with the nodes; activities are reported as well."""
        console = Console(file=io.StringIO(), width=80)
        lines = Lines(console, quiet=True)
        lines.add_activity(an_activity())
        lines.follow(_EmptyRecorder().objects)
        for _ in range(2):
            lines.tick()
        lines.add_activity(an_activity())
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        assert text.count("gang main 2/2 on node-1 x2") == 1
        assert text.count("patch_pods") == 1

    def test_the_live_view_shows_them_as_they_are(self) -> None:
        """And says when there are none yet."""
        view = LiveView(Console(file=io.StringIO(), width=80))
        view.follow(_EmptyRecorder().objects)
        view.add_activity(an_activity())
        lines = printed(view._render())
        assert "└── gang main 2/2 on node-1 x2 ✔" in lines
        assert max(map(len, lines)) <= 80
        view.follow(list)
        assert "no jobs of yours yet" in "".join(printed(view._render()))

"""Each step can be replaced by another service in its trigger, without any effect on the other steps."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from muster.replay.gangs import gangs_of
from muster.replay.replay import ReplayResult, replay
from muster.runtime import steps
from muster.simulator.overlays import CLUSTER, load, of_kind
from tests.replays import recorded
from tests.replays.test_streams import groups_of
from tests.stories.stage import written

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
THEIRS = "team-step"
REPLY = "dev.muster.team_step.created"
WORLDS = {
    "create_workload": ("1-torch", "before create_workload"),
    "create_pod_groups": ("1-torch", "before create_workload"),
    "patch_pods": ("1-torch", "before create_workload"),
    "emit_conditions": ("1-torch", "before patch_pods"),
    "resize_gang": ("4-job-scaled", "before resize_gang to 2"),
    "mark_runtime": ("7-runtime-annotated", "before mark_runtime"),
}
"""A recording by step, and a moment of it at which the step plans something."""

SAME = "STEP = replace(step_named({step!r}), name='team_step')"
IDLE = "STEP = replace(step_named({step!r}), name='team_step', plan=lambda inputs, now: NoOp('UpToDate'))"


def swap(step: str, code: str, folder: Path) -> Path:
    """Write an overlay in which the step's trigger names the service THEIRS, and their step; return it."""
    objects = load()
    triggers = {trigger["metadata"]["name"]: trigger["spec"] for trigger in of_kind(objects, "Trigger")}
    triggers[step.replace("_", "-")]["subscriber"]["ref"]["name"] = THEIRS
    if step == "create_workload":
        triggers["create-pod-groups"]["filters"][0]["any"][2]["exact"]["type"] = REPLY
    function = folder / "team_step" / "function"
    function.mkdir(parents=True)
    imports = (
        "from dataclasses import replace\nfrom muster import NoOp\n"
        "from muster.runtime.steps import step_named\n"
    )
    (function / "step.py").write_text(imports + code.format(step=step))
    return written(objects, function.parent)


def test_every_step_is_replaced_below() -> None:
    """Every step has a recording here, but gather_pods, which none has, and components."""
    assert set(WORLDS) == set(steps.step_names()) - {"gather_pods"} - steps.OPTIONAL


@cache
def as_it_is(step: str) -> ReplayResult:
    """The end of a step's recording with Muster's own functions."""
    return run(step)


def run(step: str, overlay: Path = CLUSTER) -> ReplayResult:
    """Replay the recording of a step through all functions of an overlay."""
    story, moment = WORLDS[step]
    world = recorded.world_at(story, moment).objects
    return replay(recorded.events(story), world, NOW, overlay=overlay)


def writers(end: ReplayResult) -> set[str]:
    """Return the names of the functions that wrote."""
    return {activity.step for activity in end.activities if activity.actions}


@pytest.mark.parametrize("step", WORLDS)
def test_a_step_that_does_the_same_changes_nothing_for_the_others(step: str, tmp_path: Path) -> None:
    """Groups, gates, sizes, group labels and conditions are equal, and Muster's own step never ran."""
    before = as_it_is(step)
    after = run(step, swap(step, SAME, tmp_path))
    assert groups_of(after.objects) == groups_of(before.objects)
    assert gangs_of(after.objects) == gangs_of(before.objects)
    assert after.dead_letters == ()
    assert writers(after) == writers(before) - {step} | {"team_step"}


@pytest.mark.parametrize("step", WORLDS)
def test_a_replacement_that_does_nothing_gets_the_same_events(step: str, tmp_path: Path) -> None:
    """With a service that only answers 202, no event becomes a dead letter."""
    before = as_it_is(step)
    after = run(step, swap(step, IDLE, tmp_path))
    assert "team_step" not in writers(after)
    assert heard(after, "team_step") >= heard(before, step) > set()
    assert after.dead_letters == ()


def heard(end: ReplayResult, step: str) -> set[tuple[str, str]]:
    """Return the recorded objects about which a function got events."""
    recorded_kinds = {
        "TrainJob",
        "JobSet",
        "Job",
        "Pod",
        "PodGroup",
        "TrainingRuntime",
        "ClusterTrainingRuntime",
    }
    return {
        (activity.about, activity.trigger)
        for activity in end.activities
        if activity.step == step and activity.about.partition(" ")[0] in recorded_kinds
    }

"""Each step can be replaced by another service in its trigger, without any effect on the other steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest
import yaml

from muster import kustomize as manifests
from muster import steps
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.replay import replay as replaying
from muster.replay.replay import ReplayInput, ReplayResult, replay
from muster.replay.summary import summarize
from muster.runtime.step import Step
from muster.simulator.broker import Wiring
from tests.replays import recorded
from tests.replays.test_streams import groups_of

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
THEIRS = "team-step"
WORLDS = {
    "create_workload": ("1-torch", "before create_workload"),
    "create_pod_groups": ("1-torch", "before create_workload"),
    "patch_pods": ("1-torch", "before create_workload"),
    "emit_conditions": ("1-torch", "before create_workload"),
    "resize_gang": ("4-job-scaled", "before resize_gang to 2"),
    "mark_runtime": ("7-runtime-annotated", "before mark_runtime"),
}
"""A recording by step, and a moment of it at which the step plans something."""

Swap = Callable[[Step], None]


@pytest.fixture(name="swap")
def _swap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swap:
    """Write an overlay in which the step's trigger names the service THEIRS; return its folder."""

    def swap(theirs: Step) -> None:
        subscriber = {"op": "replace", "path": "/spec/subscriber/ref/name", "value": THEIRS}
        target = {"kind": "Trigger", "name": theirs.name.replace("_", "-")}
        overlay = {
            "kind": "Kustomization",
            "resources": [str(manifests.CLUSTER)],
            "patches": [{"target": target, "patch": yaml.safe_dump([subscriber])}],
        }
        (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        wiring = Wiring.from_manifests(manifests.load(tmp_path)).without_timers()
        ours = steps.step_named
        named = dataclasses.replace(theirs, name=THEIRS.replace("-", "_"))
        monkeypatch.setattr(replaying, "_wiring", lambda: wiring)
        monkeypatch.setattr(steps, "step_named", lambda name: named if name == THEIRS else ours(name))

    return swap


def test_every_step_is_replaced_below() -> None:
    """Every step has a recording here."""
    assert set(WORLDS) == set(steps.step_names())


@cache
def as_it_is(step: str) -> ReplayResult:
    """The end of a step's recording with Muster's own functions."""
    return run(step)


def run(step: str) -> ReplayResult:
    """Replay the recording of a step through all functions."""
    story, moment = WORLDS[step]
    return replay(ReplayInput(recorded.events(story)), [recorded.world_at(story, moment)], NOW)


def writers(end: ReplayResult) -> set[str]:
    """Return the names of the functions that wrote."""
    return {activity.step for activity in end.activities if activity.actions}


@pytest.mark.parametrize("step", WORLDS)
def test_a_step_that_does_the_same_changes_nothing_for_the_others(step: str, swap: Swap) -> None:
    """Groups, gates, sizes, marks and conditions are equal, and Muster's own step never ran."""
    before = as_it_is(step)
    swap(steps.step_named(step))
    after = run(step)
    assert groups_of(after.objects) == groups_of(before.objects)
    assert summarize(after.objects) == summarize(before.objects)
    assert after.dead_letters == ()
    assert writers(after) == writers(before) - {step} | {"team_step"}


@pytest.mark.parametrize("step", WORLDS)
def test_a_step_that_does_nothing_yet_hears_what_the_one_before_heard(step: str, swap: Swap) -> None:
    """With a service that only answers 202, no event becomes a dead letter."""
    before = as_it_is(step)
    idle = dataclasses.replace(steps.step_named(step), plan=lambda _inputs, _now: NoOp(Reason.UP_TO_DATE))
    swap(idle)
    after = run(step)
    assert "team_step" not in writers(after)
    assert heard(after, "team_step") >= heard(before, step) > set()
    assert after.dead_letters == ()


def heard(end: ReplayResult, step: str) -> set[tuple[str, str]]:
    """Return the recorded objects about which a function got events."""
    recorded_kinds = {"TrainJob", "JobSet", "Job", "Pod", "TrainingRuntime", "ClusterTrainingRuntime"}
    return {
        (activity.about, activity.trigger)
        for activity in end.activities
        if activity.step == step and activity.about.partition(" ")[0] in recorded_kinds
    }

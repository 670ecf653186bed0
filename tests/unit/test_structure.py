"""The structure of the code: one meaning per class name, short ways."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from muster.cluster.observe.snapshot import Snapshot
from muster.objects.meta import ObjectRef
from muster.policy.model import Plan
from muster.runtime.steps import step_named
from tests.replays import recorded

ROOT = Path(__file__).parents[2]
CODE = [
    path
    for folder in ("shared", "functions", "release", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
]
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def test_no_class_name_is_defined_twice() -> None:
    """A name that a reader met once means the same everywhere; test classes are named by their modules."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in CODE:
        for name in re.findall(r"^ *class (?!Test)(\w+)", path.read_text(), re.MULTILINE):
            places[name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_the_plan_of_a_workload_is_decided_in_six_files_of_policy() -> None:
    """The owner is resolved before; its plan compiles groups."""
    world = recorded.world_at("1-torch", "before create_workload")
    trainjob = next(body for body in world.objects if body["kind"] == "TrainJob")
    meta = trainjob["metadata"]
    ref = ObjectRef(trainjob["apiVersion"], "TrainJob", meta["namespace"], meta["name"], meta["uid"])
    step = step_named("create_workload")
    inputs = step.observe(Snapshot(world.objects), ref)
    entered: set[str] = set()

    def enter(frame: FrameType, event: str, _argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT / "shared/muster/policy"):
            entered.add("/".join(path.parts[-2:]))

    before = sys.getprofile()
    sys.setprofile(enter)
    try:
        decision = step.plan(inputs, NOW)
    finally:
        sys.setprofile(before)
    assert isinstance(decision, Plan)
    assert len(entered) <= 6, sorted(entered)

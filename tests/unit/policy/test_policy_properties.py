"""Whatever owners and policies come: what is valid is accepted, what is not is told with its path."""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import given, settings

from shared.policy.model import Nothing, Observed, Plan
from shared.policy.ownership import Considered, consider
from shared.policy.reasons import Reason
from shared.policy.workload import plan_workload
from tests.support.builders import NOW, pods_of
from tests.support.generated_policies import NOT_SLOW, compiled, worlds


@NOT_SLOW
@given(world=worlds())
def test_every_stamped_pod_has_its_group(world: Observed) -> None:
    """The name that admission writes on a pod is among the groups made, or among the stand-ins."""
    names = _stamped(world)
    bodies = compiled(world)
    if bodies:
        assert names <= {body["metadata"]["name"] for body in bodies if body["kind"] == "PodGroup"}
        return
    decision = plan_workload(world, NOW)
    held = isinstance(world.homes[0].content, dict) and "Hold" in str(world.homes[0].content)
    made = {action.target.name for action in decision.actions} if isinstance(decision, Plan) else set()
    assert held or names <= made


def _stamped(world: Observed) -> set[str]:
    pods = [pod for job in world.jobs for pod in pods_of(job.model_dump(by_alias=True, exclude_none=True))]
    return {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods}


PATH = re.compile(r"^home: workload(\.groups|\[\d+\]|\.[A-Za-z]+)*: .")


@NOT_SLOW
@given(world=worlds())
def test_an_invalid_policy_names_a_path(world: Observed) -> None:
    """Home, path, words; a flaw of the marks themselves, which no policy speaks of, names the group."""
    considered = consider(world)
    assert isinstance(considered, Considered)
    flaw = considered.flaw
    if flaw is None:
        return
    of_marks_alone = flaw.reason != Reason.INVALID_POLICY and flaw.message.startswith("group ")
    assert of_marks_alone or PATH.match(flaw.message), flaw


@NOT_SLOW
@given(world=worlds())
def test_planning_is_pure(world: Observed) -> None:
    """The same twice, and nothing that was observed is changed."""
    before = copy.deepcopy(world)
    first: Any = plan_workload(world, NOW)
    assert plan_workload(world, NOW) == first
    assert world == before


def test_what_is_drawn_is_not_all_of_one_kind() -> None:
    """Else the properties above would hold of nothing."""
    seen: set[str] = set()

    @settings(NOT_SLOW, max_examples=300)
    @given(world=worlds())
    def draw(world: Observed) -> None:
        considered = consider(world)
        assert not isinstance(considered, Nothing)
        if considered.flaw:
            seen.add(str(considered.flaw.reason))
            return
        seen.add("tree" if any(root.children for root in considered.tree) else "flat")
        leaves = (leaf for root in considered.tree for leaf in root.leaves())
        if any(len({one.priority.name for one in leaf.pod_sets}) > 1 for leaf in leaves):
            seen.add("two classes in one group")

    draw()
    flaws = {"InvalidPolicy", "WaitsForItself", "PrioritiesDiffer", "SchedulersDiffer"}
    assert {"tree", "flat", "two classes in one group"} | flaws <= seen

"""Property test: valid policies are accepted, invalid ones are refused with a path."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings

from muster.policy.model import NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import NOW, pods_of
from tests.support.generated_policies import NOT_SLOW, compiled, observations
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_workload, resolve


def every_stamped_pod_has_its_group(world: Observed) -> None:
    """The name that admission writes on a pod is among the groups made, or among the fallback groups."""
    names = _stamped(world)
    manifests = compiled(world)
    if manifests:
        assert names <= {body["metadata"]["name"] for body in manifests if body["kind"] == "PodGroup"}
        return
    decision = plan_workload(world, NOW)
    held = isinstance(world.sources[0].content, dict) and "Hold" in str(world.sources[0].content)
    made = {action.target.name for action in decision.actions} if isinstance(decision, Plan) else set()
    assert held or names <= made


def _stamped(world: Observed) -> set[str]:
    pods = [pod for job in world.jobs for pod in pods_of(job.model_dump(by_alias=True, exclude_none=True))]
    return {pod["spec"]["schedulingGroup"]["podGroupName"] for pod in pods}


PATH = re.compile(r"\bhome\b.*\bworkload(\.groups|\[\d+\]|\.[A-Za-z]+)*")


def an_invalid_policy_names_a_path(world: Observed) -> None:
    """Policy source, path, message; a failure of the group labels alone names the group."""
    resolved = resolve(world)
    assert isinstance(resolved, ResolvedOwner)
    failure = resolved.failure
    if failure is None:
        return
    of_marks_alone = failure.reason != Reason.INVALID_POLICY and failure.group != ""
    names_the_group = of_marks_alone and mentions(failure.message, failure.group)
    assert names_the_group or PATH.search(failure.message), failure


def planning_is_pure(world: Observed) -> None:
    """The same twice, and nothing that was observed is changed."""
    before = copy.deepcopy(world)
    first: Any = plan_workload(world, NOW)
    assert plan_workload(world, NOW) == first
    assert world == before


LAWS = (planning_is_pure, every_stamped_pod_has_its_group, an_invalid_policy_names_a_path)


def kinds_of(world: Observed) -> Iterator[str]:
    """What a world is an example of."""
    resolved = resolve(world)
    assert not isinstance(resolved, NoOp)
    if resolved.failure:
        yield str(resolved.failure.reason)
        return
    yield resolved.root.kind
    yield "tree" if any(root.children for root in resolved.tree) else "flat"
    leaves = (leaf for root in resolved.tree for leaf in root.leaves())
    if any(len({pod_set.priority.name for pod_set in leaf.pod_sets}) > 1 for leaf in leaves):
        yield "two classes in one group"


def test_the_laws_hold_of_worlds_of_every_kind() -> None:
    """Each world, the dear part of it, is drawn once for all laws; and they are not all of one kind."""
    seen: set[str] = set()

    @settings(NOT_SLOW, max_examples=100)
    @given(world=observations())
    def draw(world: Observed) -> None:
        for law in LAWS:
            law(world)
        seen.update(kinds_of(world))

    draw()
    failures = {"InvalidPolicy", "WaitsForItself", "PrioritiesDiffer", "SchedulersDiffer"}
    owners = {"TrainJob", "JobSet", "Job"}
    assert {"tree", "flat", "two classes in one group"} | owners | failures <= seen

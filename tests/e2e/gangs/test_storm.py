"""Gangs of five kinds under kills, scaling and updates at random run whole afterwards: `make storm`.

Not in `make e2e`: in one of seven runs KubeRay 1.6.2 did not make the head of its RayCluster again, which had
been deleted as soon as it existed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from random import Random
from time import monotonic, sleep

import pytest

from tests.cluster.api import Refused
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage
from tests.e2e.gangs.test_operators import OPTIONS, a_leader_worker_set, a_ray_cluster
from tests.e2e.gangs.workloads import a_deployment, a_pod, a_stateful_set
from tests.e2e.support import admission
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.storm, pytest.mark.timeout(300)]
SECONDS = 20
__all__ = ["OPTIONS"]


@pytest.fixture
def story(stage: RealStage) -> Iterator[RealStory]:
    """A story without the laws of starting gangs: replacements of killed pods join one by one."""
    story = RealStory(stage.cluster, "storm")
    assert admission.policies_at_work(stage.cluster.api, story.namespace)
    stage.muster.settle()
    yield story
    story.end()


def test_what_was_killed_and_scaled_at_random_runs_again(story: RealStory, muster_on_it: Muster) -> None:
    """Half of the room at first; then for all. Of each gang all pods are bound, and no gate is left."""
    chance = Random(53)  # noqa: S311 - no secret
    story.add_nodes(2, cpu=8)
    owners = [
        story.create(a_stateful_set("set", 4)),
        story.create(a_deployment("web", 4)),
        story.create(a_leader_worker_set("serve", 2, 3)),
        story.create(a_ray_cluster("ray", 3, label=4)),
    ]
    for number in range(3):
        story.create(a_pod(f"plain-{number}", "plain", 3))
    actions: tuple[Callable[[], None], ...] = (
        lambda: _kill(story, chance),
        lambda: _kill(story, chance),
        lambda: _scale(story, chance.choice(owners), chance),
        lambda: _update(story, owners[chance.randrange(2)], chance),
    )
    end = monotonic() + SECONDS
    while monotonic() < end:
        with contextlib.suppress(Refused):  # changed or gone meanwhile
            chance.choice(actions)()
        sleep(chance.uniform(0, 0.8))

    story.add_nodes(4, cpu=8)
    for owner, replicas in zip(owners, (4, 4, 2, 3), strict=True):
        _set_replicas(story, owner, replicas)
    for number in range(3):
        if f"plain-{number}" not in {pod["metadata"]["name"] for pod in story.pods()}:
            story.create(a_pod(f"plain-{number}", "plain", 3))
    sizes = {"set": 4, "web": 4, "serve": 3, "ray": 4, "plain": 3}

    def whole() -> bool:
        """Sizes follow at sweeps."""
        muster_on_it.sweep()
        return story.running() == len(story.pods()) == 4 + 4 + 2 * 3 + 4 + 3 and _sizes(story) == sizes

    assert until(whole, 120), story.as_text()
    assert not any(map(story.gates, story.pods()))


def _sizes(story: RealStory) -> dict[str, int]:
    """The minCount of the groups of pods, by the beginning of the pods' names."""
    groups = {group["metadata"]["name"]: group for group in story.groups().values()}
    policies = {pod["metadata"]["name"].split("-")[0]: groups[story.group_name(pod)] for pod in story.pods()}
    return {name: group["spec"]["schedulingPolicy"]["gang"]["minCount"] for name, group in policies.items()}


def _kill(story: RealStory, chance: Random) -> None:
    pods = story.pods()
    for pod in chance.sample(pods, min(len(pods), chance.choice((1, 1, 4)))):
        story.delete({"apiVersion": "v1", "kind": "Pod", **pod})


def _scale(story: RealStory, owner: Object, chance: Random) -> None:
    _set_replicas(story, owner, chance.choice((0, 1, 2, 3, 5)))


def _set_replicas(story: RealStory, owner: Object, replicas: int) -> None:
    spec: Object = {"replicas": replicas}
    if owner["kind"] == "RayCluster":
        spec = {"workerGroupSpecs": [owner["spec"]["workerGroupSpecs"][0] | spec]}
    story.patch(owner, {"spec": spec})


def _update(story: RealStory, owner: Object, chance: Random) -> None:
    """A rolling update."""
    version = str(chance.randrange(1000))
    story.patch(owner, {"spec": {"template": {"metadata": {"annotations": {"version": version}}}}})

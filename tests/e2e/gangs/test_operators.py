"""LeaderWorkerSets and RayClusters as gangs, on their real operators and the real scheduler."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.policy.group_labels import MIN_COUNT
from tests.cluster import manifests
from tests.cluster.cluster import EVERYTHING, TYPES, ClusterOptions
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage
from tests.e2e.gangs.workloads import a_template, min_counts
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(controllers=(*EVERYTHING, "lws", "kuberay"), types=(*TYPES, "lws", "kuberay"))

KINDS = Path(__file__).parents[3] / "eventing/kinds"
EXAMPLES = Path(__file__).parents[3] / "eventing/examples/any-workload"
GROUP_KEY = "leaderworkerset.sigs.k8s.io/group-key"


def a_leader_worker_set(name: str, replicas: int, size: int, *, labelled: bool = True, **spec: Any) -> Object:
    """Return a LeaderWorkerSet; each replica is a gang by the label and annotation of its template."""
    template = _a_plain_template(1)
    if labelled:
        metadata = {"labels": {MIN_COUNT: "all"}, "annotations": {"muster.dev/gang-by": GROUP_KEY}}
        template |= {"metadata": metadata}
    leader_and_workers = {"size": size, "workerTemplate": template}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": leader_and_workers, **spec},
    }


def a_ray_cluster(name: str, workers: int, *, label: int = 0, **group: Any) -> Object:
    """Return a RayCluster of a head and workers of one CPU each, with the label if `label` is above 0."""
    template = _a_plain_template(1)
    if label:
        template |= {"metadata": {"labels": {MIN_COUNT: str(label)}}}
    workers_spec = {"groupName": "workers", "replicas": workers, "minReplicas": 0, "maxReplicas": 9, **group}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [{**workers_spec, "rayStartParams": {}, "template": template}],
        },
    }


def _a_plain_template(cpu: int) -> Object:
    return {"spec": a_template(1, cpu=cpu)["spec"]}


@contextlib.contextmanager
def _kind(stage: RealStage, story: RealStory, name: str, obj: Object) -> Iterator[None]:
    """Apply the file of a kind for the length of a block, and wait until it acts on such an object."""
    applied = manifests.apply(stage.cluster.api, manifests.documents([KINDS / f"{name}.yaml"]))
    placed = {**obj, "metadata": {**obj["metadata"], "namespace": story.namespace}}
    path = manifests.collection(placed)
    api = stage.cluster.api
    assert until(lambda: MIN_COUNT in str(api.must("POST", path, placed, query={"dryRun": "All"})), 30)
    try:
        yield
    finally:
        for one in applied:
            api.must("DELETE", manifests.path(one))


def test_replicas_of_a_leader_worker_set_are_placed_one_by_one_and_whole(story: RealStory) -> None:
    """Two replicas of three pods, room for five: of one no pod runs. A lost pod restarts its replica."""
    story.add_nodes(1, cpu=5)
    created = story.create(a_leader_worker_set("serve", 2, 3))
    story.wait("one replica runs", lambda now: now.running() == 3 and "Unschedulable" in str(now.groups()))
    assert min_counts(story) == [3, 3]
    story.add_nodes(1, cpu=8)
    story.wait("both run", lambda now: now.running() == 6)

    before = uids(story.pods())
    story.delete({"apiVersion": "v1", "kind": "Pod", **story.pods()[0]})
    story.wait(
        "a replica is restarted", lambda now: now.running() == 6 and len(uids(now.pods()) & before) == 3, 90
    )

    story.patch(created, {"spec": {"replicas": 3}})
    story.wait("a third replica runs", lambda now: now.running() == 9)
    story.patch(created, {"spec": {"replicas": 1}})
    story.wait("one is left", lambda now: len(now.pods()) == 3)


def test_a_leader_worker_set_is_updated_and_created_again(stage: RealStage, story: RealStory) -> None:
    """A rollout replaces replica by replica; under its name another size is another gang."""
    story.add_nodes(1, cpu=8)
    created = story.create(a_leader_worker_set("serve", 2, 3))
    story.wait("both run", lambda now: now.running() == 6)
    before = uids(story.pods())
    change = {"workerTemplate": {"metadata": {"labels": {"version": "2"}}}}
    story.patch(created, {"spec": {"leaderWorkerTemplate": change}})
    story.wait("all are replaced", lambda now: now.running() == 6 and not uids(now.pods()) & before, 120)

    story.delete(created, "Foreground")
    api, path = stage.cluster.api, manifests.path(created)
    assert until(lambda: api.request("GET", path).status == 404, 60)
    story.create(a_leader_worker_set("serve", 1, 4))
    story.wait("it runs with four", lambda now: now.running() == 4)


def test_a_kind_is_one_file_leader_worker_sets(stage: RealStage, story: RealStory) -> None:
    """Without a label in the template; one whose workers come after their leader is left alone."""
    plain = a_leader_worker_set("serve", 1, 3, labelled=False)
    with _kind(stage, story, "leader-worker-sets", plain):
        story.create(plain)
        story.create(a_leader_worker_set("late", 1, 3, labelled=False, startupPolicy="LeaderReady"))
        story.wait("all pods but those after the leader exist", lambda now: len(now.pods()) == 4)
        story.add_nodes(1, cpu=8)
        story.wait("all run", lambda now: now.running() == 6)
    assert min_counts(story) == [3]
    assert len(story.ungrouped()) == 3


def test_a_kind_is_one_file_ray_clusters(stage: RealStage, story: RealStory) -> None:
    """Head and workers wait whole; applied again without labels it keeps them."""
    story.add_nodes(1, cpu=4)
    plain = a_ray_cluster("ray", 2, numOfHosts=2)
    with _kind(stage, story, "ray-clusters", plain):
        created = story.create(plain)
        story.wait("it does not fit", lambda now: "Unschedulable" in str(now.groups()))
        assert (story.running(), min_counts(story)) == (0, [5])
        story.patch(created, {"spec": {"workerGroupSpecs": plain["spec"]["workerGroupSpecs"]}})
        kept = stage.cluster.api.must("GET", manifests.path(created))
        assert kept["spec"]["workerGroupSpecs"][0]["template"]["metadata"]["labels"] == {MIN_COUNT: "5"}
        story.add_nodes(1, cpu=1)
        story.wait("five run", lambda now: now.running() == 5)


def test_a_ray_cluster_is_scaled_below_its_label_and_resumed(story: RealStory, muster_on_it: Muster) -> None:
    """Workers are added and taken; suspended and resumed it starts whole again."""
    story.add_nodes(1, cpu=6)
    created = story.create(a_ray_cluster("ray", 3, label=4))
    story.wait("four run", lambda now: now.running() == 4)
    _scale(story, created, 5)
    story.wait("six run", lambda now: now.running() == 6)
    _scale(story, created, 1)
    story.wait("two are left", lambda now: len(now.pods()) == 2)
    _lose_a_worker(story)
    story.wait("the lost worker is replaced", lambda now: now.running() == 2)
    muster_on_it.sweep()

    _scale(story, created, 3)
    story.wait("four run", lambda now: now.running() == 4)
    story.patch(created, {"spec": {"suspend": True}})
    story.wait("no pod is left", lambda now: not now.pods())
    story.patch(created, {"spec": {"suspend": False}})
    story.wait("four run again", lambda now: now.running() == 4, 60)


def test_the_examples_run(story: RealStory) -> None:
    """Those whose controllers are built here; tests/examples has the others."""
    story.add_nodes(4, cpu=8)
    for name in ("stateful-set", "deployment", "leader-worker-set", "ray-cluster", "plain-pods"):
        for example in manifests.documents([EXAMPLES / f"{name}.yaml"]):
            story.create(example)
    story.wait("all run", lambda now: now.running() == 8 + 4 + 2 * 4 + 4 + 2, 60)
    assert min_counts(story) == [2, 4, 4, 4, 4, 8]


def _scale(story: RealStory, cluster: Object, replicas: int) -> None:
    """As the autoscaler writes it."""
    group = {**cluster["spec"]["workerGroupSpecs"][0], "replicas": replicas}
    story.patch(cluster, {"spec": {"workerGroupSpecs": [group]}})


def _lose_a_worker(story: RealStory) -> None:
    worker = next(pod for pod in story.pods() if "-worker-" in pod["metadata"]["name"])
    before = uids(story.pods())
    story.delete({"apiVersion": "v1", "kind": "Pod", **worker})
    story.wait("another worker is made", lambda now: bool(uids(now.pods()) - before))

"""Runtimes that start in stages: two TrainJobs can block each other, unless all their pods are one gang."""

from __future__ import annotations

from typing import Any

import pytest

from muster.data import EVENTING
from muster.objects import yaml_files
from tests.e2e.support.owners import Object, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

NODES = 3
"""Nodes of each TrainJob: two of `node`, and the launcher as the third."""


def test_two_trainjobs_whose_launcher_and_nodes_are_one_gang_run_one_after_the_other(
    story: RealStory,
) -> None:
    """As eventing/examples/mpi-one-gang.yaml makes them: one runs whole, the other waits whole, then runs."""
    story.add_nodes(1, cpu=4)
    story.create(_runtime_of_the_example())
    for name in ("first", "second"):
        story.create(a_trainjob(name, "mpi-one-gang", kind="TrainingRuntime", nodes=NODES))
    story.wait("all pods exist, one gang runs", lambda now: _run_by_owner(now) in _ONE_OF_TWO)
    story.recording.quiet()
    assert _run_by_owner(story) in _ONE_OF_TWO
    (winner,) = _run_by_owner(story)
    running = [pod for pod in story.pods() if pod["status"]["phase"] == "Running"]
    story.finish_pods([pod for pod in running if _replicated_job(pod) == "launcher"])
    story.wait_for_true("TrainJob", winner, "Complete")
    story.wait(
        "the other runs whole",
        lambda now: _run_by_owner(now) in _ONE_OF_TWO and winner not in _run_by_owner(now),
    )
    assert not any(_is_warning(event) for event in story.recording.now("Event").values())


_ONE_OF_TWO = ({"first": NODES}, {"second": NODES})


def _runtime_of_the_example() -> Object:
    example = (EVENTING / "examples" / "mpi-one-gang.yaml").read_text()
    (runtime,) = [body for body in yaml_files.load_all(example) if body["kind"] == "TrainingRuntime"]
    return {**runtime, "metadata": {**runtime["metadata"], "namespace": ""}}


def _run_by_owner(story: RealStory) -> dict[str, int]:
    """Running pods by TrainJob."""
    counts: dict[str, int] = {}
    for pod in story.pods():
        if pod["status"].get("phase") == "Running":
            owner = pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"]
            counts[owner] = counts.get(owner, 0) + 1
    return counts


def _replicated_job(pod: Object) -> str:
    name: str = pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"]
    return name


def _is_warning(event: Any) -> bool:
    return bool(event["reason"] == "HoldsWhileWaiting")

"""What the admission policies cost: measured on every run, and bounded so that it may not become much."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import pytest

from muster.local.stories.watching import Entry
from muster.policy.group_labels import GATE
from tests.e2e.support.owners import Object, a_trainjob
from tests.e2e.support.story import RealStory
from tests.support.births import metadata_of_pods

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TRAINJOBS, NODES = 3, 8
TRIES = 50
AT_MOST = 0.1
"""Seconds more for a pod: a hundred times what is seen, for a machine that does other things as well."""


def test_a_pod_is_stamped_as_quickly_as_it_is_made(
    story: RealStory, capsys: pytest.CaptureFixture[str]
) -> None:
    """The API server's own time for a pod with a group label and for one without; nothing is stored."""
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    for _ in range(TRIES):
        for how, labels in (("without", {}), ("with", {"muster.dev/group": "main"})):
            began = time.perf_counter()
            pod = story.api.must("POST", _pods(story), _a_pod(labels), query={"dryRun": "All"})
            seconds[how].append(time.perf_counter() - began)
            assert ("schedulingGroup" in pod["spec"]) == (how == "with")
    _say(capsys, f"a pod is made in {_as_text(seconds)}")
    assert median(seconds["with"]) - median(seconds["without"]) < AT_MOST


def test_every_pod_of_many_is_stamped_and_gated_at_its_birth(
    begin_story: Callable[..., RealStory], capsys: pytest.CaptureFixture[str]
) -> None:
    """TrainJobs with and without stamped pods, in turn: the delay of their pods is printed."""
    plain, stamped = begin_story(opted_in=False), begin_story()
    for story in (plain, stamped):
        story.add_nodes(TRAINJOBS)
    for number in range(TRAINJOBS):
        for story in (plain, stamped):
            story.create(a_trainjob(f"llama-{number}", "torch-distributed", nodes=NODES))
            wanted = (number + 1) * NODES
            story.wait(f"{wanted} pods run", partial(_runs, pods=wanted), 90)

    born = [entry.object for entry in stamped.recording.entries() if _is_born(entry)]
    assert [(stamped.gates(pod), bool(stamped.group_name(pod))) for pod in born] == [
        ({GATE}, True)
    ] * TRAINJOBS * NODES
    assert not any(map(plain.group_name, plain.pods()))

    first = {"without": _delays(plain, _is_born), "with": _delays(stamped, _is_born)}
    bound = {"without": _delays(plain, _is_bound), "with": _delays(stamped, _is_bound)}
    _say(capsys, f"the first pod comes after {_as_text(first)}, and is bound after {_as_text(bound)}")


def _pods(story: RealStory) -> str:
    return f"/api/v1/namespaces/{story.namespace}/pods"


def _a_pod(labels: dict[str, str]) -> Object:
    """As the Job controller makes it."""
    containers = [{"name": "main", "image": "example.com/train"}]
    metadata = {"generateName": "sweep-0-", **metadata_of_pods("sweep", **labels)}
    return {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": containers}}


def _say(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        # Where tests run in several processes, their stdout is not seen.
        sys.stderr.write(f"\n{line}\n")


def _delays(story: RealStory, happened: Callable[[Entry], bool]) -> list[float]:
    """For each TrainJob the seconds until it first happened to one of its pods."""
    entries = story.recording.entries()
    made = {entry.name: entry.at for entry in entries if (entry.kind, entry.change) == ("TrainJob", "ADDED")}
    return [
        next(entry.at for entry in entries if happened(entry) and entry.name.startswith(name)) - seconds
        for name, seconds in made.items()
    ]


def _runs(story: RealStory, pods: int) -> bool:
    return story.running() == pods


def _is_born(entry: Entry) -> bool:
    return (entry.kind, entry.change) == ("Pod", "ADDED")


def _is_bound(entry: Entry) -> bool:
    return entry.kind == "Pod" and "nodeName" in entry.object["spec"]


def _as_text(delays: dict[str, list[float]]) -> str:
    parts = (f"{median(seconds) * 1000:.0f} ms {how} the policies" for how, seconds in delays.items())
    return ", ".join(parts)

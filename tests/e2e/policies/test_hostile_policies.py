"""Policies that a tenant writes to stop the functions: each ends as InvalidPolicy, others do not wait."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic

import pytest

from tests.e2e.conftest import RealStage
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

POLICY = "muster.dev/pod-group-policy"
KEYS = "".join(f"k{number}: 1\n" for number in range(20_000))
"""230 kB, nearly all that the annotations of an object may have together."""

LEVELS = [f"- &g{level} {{name: a, groups: [{', '.join([f'*g{level - 1}'] * 8)}]}}" for level in range(1, 9)]
ALIASES = "\n".join(["x:", "- &g0 {name: a}", *LEVELS, "spec: {podGroupPolicy: {workload: {groups: [*g8]}}}"])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("!!bool x", id="a tag that its value does not fit"),
        pytest.param("%TAG ! tag:yaml.org,2002:\n---\n!bool x", id="a directive"),
        pytest.param("coscheduling: {a: 0x" + "f" * 8000 + "}", id="a number of 8,000 digits"),
        pytest.param(KEYS, id="20,000 keys"),
    ],
)
def test_a_policy_that_cannot_be_read_ends_as_documented(
    begin_story: Callable[..., RealStory], text: str
) -> None:
    """The pods run in a fallback PodGroup, the owner says why; a Job of another namespace does not wait."""
    hostile, other = begin_story(), begin_story()
    for story in (hostile, other):
        story.add_nodes(1)
    began = monotonic()
    for number in range(4):
        job = a_job(f"sweep-{number}", pods=2)
        job["metadata"]["annotations"] = {POLICY: text}
        hostile.create(job)
    other.create(a_job("sweep", pods=2))
    other.wait("two pods run", lambda now: now.running() == 2)
    assert monotonic() - began < 30
    hostile.wait("eight pods run", lambda now: now.running() == 8)
    for number in range(4):
        hostile.wait("it says why", partial(says_why, name=f"sweep-{number}"))
    assert {tuple(group["spec"]["schedulingPolicy"]) for group in hostile.groups().values()} == {("basic",)}


def says_why(story: RealStory, name: str) -> bool:
    """Whether a Job has the condition about its invalid policy."""
    return story.reason("Job", name, "PodGroupsReady") == "InvalidPolicy"


def workload_uid(story: RealStory) -> str:
    """The UID of the TrainJob's Workload; empty while there is none."""
    workload = story.recording.now("Workload").get("bert")
    return "" if workload is None else workload["metadata"]["uid"]


def test_a_snapshot_with_aliases_costs_nothing(story: RealStory, stage: RealStage) -> None:
    """A tenant writes it into the Trainer's ConfigMap; the functions do not read it."""
    story.add_nodes(1)
    story.create(a_trainjob("bert", "torch-distributed", nodes=2))
    story.wait("two pods run", lambda now: now.running() == 2)
    snapshot = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "bert-runtime-snapshot", "namespace": story.namespace},
    }
    story.patch(snapshot, {"data": {"runtime": ALIASES}})
    deleted = workload_uid(story)
    story.delete(
        {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {"name": "bert", "namespace": story.namespace},
        }
    )
    began = monotonic()
    stage.muster.sweep()
    story.wait("the Workload is back", lambda now: workload_uid(now) not in {"", deleted})
    assert monotonic() - began < 15

"""A JobSet with a CompositePodGroup restarts on the local stack and is placed again, by events alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from muster.objects.resources import COMPOSITE_POD_GROUPS, PODS
from muster.policy.model import PatchType
from muster.replay.snapshots import Object, Objects
from muster.simulator.apiserver.http import Request
from muster.simulator.controllers.kubelet import DELETE_DELAY
from muster.simulator.overlays import built
from muster.testing import RunningStack
from tests.e2e.support.trees import chat, uids

pytestmark = pytest.mark.usefixtures("in_process")

NAMESPACE = "restart"
SECONDS = 20.0
"""Seconds; shorter than the minute between two sweeps, so that only events can help."""


class RestartingJobSet(RunningStack):
    """The local stack with the source of CompositePodGroup events, a JobSet on it, and its pods."""

    def begin(self, *, decode: int) -> None:
        """Create the JobSet with this number of decode pods, and wait until all run."""
        self.create_namespace(NAMESPACE)
        body = chat()
        body["spec"]["replicatedJobs"][1]["template"]["spec"] |= {
            "parallelism": decode,
            "completions": decode,
        }
        self.create(body, NAMESPACE)
        self.holds(lambda: len(self.running()) == 2 + decode)
        self._uids = uids(self.running())

    def holds(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds, without a sweep."""
        self.until("it goes on by events alone", condition)

    def pods(self, label: str = "") -> Objects:
        """Return all pods, or those of a group."""
        pods = self.all("Pod", NAMESPACE)
        return [pod for pod in pods if label in ("", pod["metadata"]["labels"]["muster.dev/group"])]

    def running(self, label: str = "") -> Objects:
        """Return the running pods, or those of a group."""
        return [pod for pod in self.pods(label) if pod["status"].get("phase") == "Running"]

    def new(self) -> Objects:
        """Return the pods that were created after the first ones ran."""
        return [pod for pod in self.pods() if pod["metadata"]["uid"] not in self._uids]

    def min_group_count(self) -> int:
        """Return minGroupCount of the CompositePodGroup; 0 while it is being replaced."""
        there = self.all("CompositePodGroup", NAMESPACE)
        return sum(composite["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for composite in there)

    def patch(self, pods: Objects, change: Object, subresource: str = "") -> None:
        """Patch pods."""
        merge = PatchType.MERGE
        for name in [pod["metadata"]["name"] for pod in pods]:
            self.client.patch(
                PODS, name, NAMESPACE, change, patch=merge, manager="test", subresource=subresource
            )

    def end(self, phase: str, pods: Objects) -> None:
        """Let pods succeed or fail."""
        self.patch(pods, {"status": {"phase": phase}}, "status")

    def was_lawful(self) -> None:
        """Assert that no event became a dead letter, and that the laws of the stories held."""
        self.settle()
        assert self.dead_letters() == []
        assert self.recorder.history(NAMESPACE)
        assert self.broken_laws(NAMESPACE) == []


@pytest.fixture
def jobset() -> Iterator[RestartingJobSet]:
    """One for each test."""
    with RestartingJobSet(built("composite-pod-groups")) as jobset:
        jobset.recorder.follow(COMPOSITE_POD_GROUPS)
        yield jobset


def test_prefill_waits_while_old_pods_of_decode_terminate(jobset: RestartingJobSet) -> None:
    """New pods are not placed beside old ones; when these are gone, all four new pods are bound."""
    jobset.begin(decode=2)
    hanging = jobset.running("decode")
    jobset.patch(hanging, {"metadata": {"annotations": {DELETE_DELAY: "10m"}}})
    jobset.end("Failed", jobset.running("prefill")[:1])
    jobset.holds(lambda: len(jobset.new()) == 2)
    jobset.holds(lambda: len(jobset.pods()) == 4)
    jobset.settle()
    assert [pod["spec"].get("nodeName") for pod in jobset.new()] == [None, None]
    jobset.patch(hanging, {"metadata": {"annotations": {DELETE_DELAY: "0s"}}})
    jobset.holds(lambda: len(jobset.running()) == len(jobset.new()) == 4)
    jobset.was_lawful()


def test_a_lowered_min_group_count_is_raised_and_the_gang_goes_on(jobset: RestartingJobSet) -> None:
    """Decode ends, prefill fails, resize_gang is slow: an event of the new CompositePodGroup completes it."""
    jobset.begin(decode=1)
    jobset.end("Succeeded", jobset.running("decode"))
    jobset.holds(lambda: jobset.min_group_count() == 1)
    go_on = threading.Event()

    def slow(request: Request) -> None:
        if request.headers.get("user-agent") == "muster-resize-gang":
            go_on.wait(SECONDS)

    jobset.server.intercept = slow
    jobset.end("Failed", jobset.running("prefill")[:1])
    jobset.holds(lambda: len(jobset.new()) == 3)
    time.sleep(0.5)  # for patch_pods, which hears of the pods
    assert [pod["spec"].get("nodeName") for pod in jobset.new()] == [None] * 3
    go_on.set()
    jobset.holds(lambda: len(jobset.running()) == 3 and jobset.min_group_count() == 2)
    jobset.was_lawful()

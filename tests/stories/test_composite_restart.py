"""A JobSet with a CompositePodGroup restarts on the local stack and is placed again, by events alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from muster.local.stack import Stack, StackOptions
from muster.local.stories.laws import LAWS
from muster.local.stories.watching import KINDS, TimelineRecorder
from muster.objects.patches import PatchType
from muster.objects.resources import COMPOSITE_POD_GROUPS, JOBSETS, NAMESPACES, PODS
from muster.replay.snapshots import Object, Objects
from muster.simulator.apiserver.http.requests import Request
from muster.simulator.controllers.kubelet import DELETE_DELAY
from muster.simulator.overlays import built
from tests.e2e.support.trees import chat, uids

NAMESPACE = "restart"
SECONDS = 20.0
"""Seconds; shorter than the minute between two sweeps, so that only events can help."""


class RestartingJobSet:
    """The JobSet on the local stack, and actions and queries of its pods."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder) -> None:
        self.stack, self.recorder = stack, recorder
        self._uids: set[str] = set()

    def begin(self, *, decode: int) -> None:
        """Create the JobSet with this number of decode pods, and wait until all run."""
        labels = {"muster.dev/gang-jobs": "enabled"}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        self.stack.client.create(NAMESPACES, home, manager="test")
        body = chat()
        body["metadata"]["namespace"] = NAMESPACE
        body["spec"]["replicatedJobs"][1]["template"]["spec"] |= {
            "parallelism": decode,
            "completions": decode,
        }
        self.stack.client.create(JOBSETS, body, manager="test")
        self.until(lambda: len(self.running()) == 2 + decode)
        self._uids = uids(self.running())

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds, without a sweep."""
        assert self.recorder.until(holds, SECONDS)

    def pods(self, label: str = "") -> Objects:
        """Return all pods, or those of a group."""
        pods = [obj for obj in self.recorder.objects(NAMESPACE) if obj["kind"] == "Pod"]
        return [pod for pod in pods if label in ("", pod["metadata"]["labels"]["muster.dev/group"])]

    def running(self, label: str = "") -> Objects:
        """Return the running pods, or those of a group."""
        return [pod for pod in self.pods(label) if pod["status"].get("phase") == "Running"]

    def new(self) -> Objects:
        """Return the pods that were created after the first ones ran."""
        return [pod for pod in self.pods() if pod["metadata"]["uid"] not in self._uids]

    def min_group_count(self) -> int:
        """Return minGroupCount of the CompositePodGroup; 0 while it is being replaced."""
        there = [obj for obj in self.recorder.objects(NAMESPACE) if obj["kind"] == "CompositePodGroup"]
        return sum(composite["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] for composite in there)

    def patch(self, pods: Objects, change: Object, subresource: str = "") -> None:
        """Patch pods."""
        for pod in pods:
            self.stack.client.patch(
                PODS,
                pod["metadata"]["name"],
                NAMESPACE,
                change,
                patch=PatchType.MERGE,
                manager="test",
                subresource=subresource,
            )

    def end(self, phase: str, pods: Objects) -> None:
        """Let pods succeed or fail."""
        self.patch(pods, {"status": {"phase": phase}}, "status")

    def was_lawful(self) -> None:
        """Assert that no event became a dead letter, and that the laws of the stories held."""
        assert self.stack.settle(SECONDS)
        assert self.stack.dead_letters == []
        history = self.recorder.history(NAMESPACE)
        assert history
        assert [breach for law in LAWS for breach in law(history)] == []


@pytest.fixture
def jobset() -> Iterator[RestartingJobSet]:
    """The local stack with the source of CompositePodGroup events."""
    overlay = built("composite-pod-groups")
    kinds = (*KINDS, COMPOSITE_POD_GROUPS)
    with Stack(StackOptions(overlay=overlay)) as stack, TimelineRecorder(stack.client, kinds) as recorder:
        yield RestartingJobSet(stack, recorder)


def test_prefill_waits_while_old_pods_of_decode_terminate(jobset: RestartingJobSet) -> None:
    """New pods are not placed beside old ones; when these are gone, all four new pods are bound."""
    jobset.begin(decode=2)
    hanging = jobset.running("decode")
    jobset.patch(hanging, {"metadata": {"annotations": {DELETE_DELAY: "10m"}}})
    jobset.end("Failed", jobset.running("prefill")[:1])
    jobset.until(lambda: len(jobset.new()) == 2)
    jobset.until(lambda: len(jobset.pods()) == 4)
    assert jobset.stack.settle(SECONDS)
    assert [pod["spec"].get("nodeName") for pod in jobset.new()] == [None, None]
    jobset.patch(hanging, {"metadata": {"annotations": {DELETE_DELAY: "0s"}}})
    jobset.until(lambda: len(jobset.running()) == len(jobset.new()) == 4)
    jobset.was_lawful()


def test_a_lowered_min_group_count_is_raised_and_the_gang_goes_on(jobset: RestartingJobSet) -> None:
    """Decode ends, prefill fails, resize_gang is slow: an event of the new CompositePodGroup completes it."""
    jobset.begin(decode=1)
    jobset.end("Succeeded", jobset.running("decode"))
    jobset.until(lambda: jobset.min_group_count() == 1)
    go_on = threading.Event()

    def slow(request: Request) -> None:
        if request.headers.get("user-agent") == "muster-resize-gang":
            go_on.wait(SECONDS)

    assert jobset.stack.server is not None
    jobset.stack.server.intercept = slow
    jobset.end("Failed", jobset.running("prefill")[:1])
    jobset.until(lambda: len(jobset.new()) == 3)
    time.sleep(0.5)  # for patch_pods, which hears of the pods
    assert [pod["spec"].get("nodeName") for pod in jobset.new()] == [None] * 3
    go_on.set()
    jobset.until(lambda: len(jobset.running()) == 3 and jobset.min_group_count() == 2)
    jobset.was_lawful()

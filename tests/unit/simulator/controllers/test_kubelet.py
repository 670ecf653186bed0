"""The simulated kubelet moves pods on as KWOK's stages do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.writes import Delete, Patch
from muster.simulator.controllers.kubelet import (
    KubeletController,
    KubeletOptions,
    PodStage,
    duration,
    next_stage,
)
from tests.support import cpu
from tests.unit.simulator.controllers.support import NOW, a_job, a_pod_of, merge, view

OPTIONS = KubeletOptions(run_delay=1, complete_after=5, delete_delay=2)
FOR_EVER = KubeletOptions(run_delay=1, delete_delay=2)
GOING = {"metadata": {"deletionTimestamp": "2027-01-15T08:00:09Z"}}
UNBOUND = {"spec": {"nodeName": None}}
COMPLETE = {"pod-complete.stage.kwok.x-k8s.io/delay": "1m30s"}
DELETE = {"pod-delete.stage.kwok.x-k8s.io/delay": "10s"}
FAIL = {"pod-fail.stage.kwok.x-k8s.io/delay": "500ms"}


def _pod(phase: str, *changes: Object, annotations: Object | None = None) -> Object:
    pod = a_pod_of(a_job(), 0, phase)
    for change in changes:
        pod = merge(pod, change)
    pod["metadata"]["annotations"] |= annotations or {}
    return pod


@pytest.mark.parametrize(
    ("pod", "options", "stage"),
    [
        pytest.param(_pod("Pending", UNBOUND), OPTIONS, None, id="an unbound pod waits for the scheduler"),
        pytest.param(_pod("Pending"), OPTIONS, PodStage("run", 1), id="a bound pod runs"),
        pytest.param(_pod("Running"), OPTIONS, PodStage("complete", 5), id="a Job's pod completes"),
        pytest.param(_pod("Running"), FOR_EVER, None, id="or runs for ever"),
        pytest.param(
            _pod("Running", {"metadata": {"ownerReferences": None}}),
            OPTIONS,
            None,
            id="a bare pod runs for ever",
        ),
        pytest.param(
            _pod("Running", annotations=COMPLETE),
            FOR_EVER,
            PodStage("complete", 90),
            id="its annotation sets the time",
        ),
        pytest.param(
            _pod("Running", annotations=FAIL | COMPLETE),
            OPTIONS,
            PodStage("fail", 0.5),
            id="failing comes first",
        ),
        pytest.param(_pod("Running", GOING), OPTIONS, PodStage("delete", 2), id="a deleted pod goes"),
        pytest.param(
            _pod("Running", GOING, annotations=DELETE),
            OPTIONS,
            PodStage("delete", 10),
            id="its annotation sets that time too",
        ),
        pytest.param(_pod("Succeeded", GOING), OPTIONS, PodStage("delete", 2), id="a finished one too"),
        pytest.param(
            _pod("Pending", GOING, UNBOUND), OPTIONS, PodStage("collect", 2), id="an unbound one is collected"
        ),
        pytest.param(_pod("Failed", GOING, UNBOUND), OPTIONS, None, id="once only"),
        pytest.param(_pod("Succeeded"), OPTIONS, None, id="a finished pod stays"),
    ],
)
def test_next_stage(pod: Object, options: KubeletOptions, stage: PodStage | None) -> None:
    """What happens to a pod next follows from the pod alone."""
    assert next_stage(pod, options) == stage


def test_stage_is_played_when_its_delay_is_over() -> None:
    """The delay counts from when the stage was first seen; until then the look comes again."""
    pod = _pod("Pending")
    controller, cache = KubeletController(OPTIONS), view(pod)
    key = ("team-a", pod["metadata"]["name"])
    assert controller.reconcile(key, cache, NOW).requeue_after == 1.0
    assert controller.reconcile(key, cache, NOW + 0.4).requeue_after == pytest.approx(0.6)
    (write,) = controller.reconcile(key, cache, NOW + 1).writes
    assert isinstance(write, Patch)
    status = write.body["status"]
    assert status["phase"] == "Running"
    assert {condition["type"] for condition in status["conditions"]} == {
        "Initialized",
        "Ready",
        "ContainersReady",
    }
    assert status["containerStatuses"][0]["ready"] is True


def _ends(options: KubeletOptions, pod: Object) -> tuple[Any, ...]:
    controller, cache = KubeletController(options), view(pod)
    key = ("team-a", pod["metadata"]["name"])
    controller.reconcile(key, cache, NOW)
    return controller.reconcile(key, cache, NOW + 100).writes


@pytest.mark.parametrize(
    ("annotations", "phase", "code"),
    [
        pytest.param(COMPLETE, "Succeeded", 0, id="a completed pod's containers exit with 0"),
        pytest.param(FAIL, "Failed", 1, id="a failed pod's with 1"),
    ],
)
def test_pod_ends_with_an_exit_code(annotations: Object, phase: str, code: int) -> None:
    """Phase and exit code show the Job controller how the pod ended."""
    (write,) = _ends(FOR_EVER, _pod("Running", annotations=annotations))
    assert write.body["status"]["phase"] == phase
    (container,) = write.body["status"]["containerStatuses"]
    assert container["state"]["terminated"]["exitCode"] == code


def test_deleted_pod_gets_the_last_delete() -> None:
    """A pod without finalizers goes with grace period 0; one with a finalizer is Failed first."""
    (write,) = _ends(OPTIONS, _pod("Running", GOING, {"metadata": {"finalizers": None}}))
    assert isinstance(write, Delete)
    assert write.grace_seconds == 0
    status, last = _ends(OPTIONS, _pod("Running", GOING))
    assert status.body["status"]["phase"] == "Failed"
    assert isinstance(last, Delete)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("500ms", 0.5, id="milliseconds"),
        pytest.param("3s", 3.0, id="seconds"),
        pytest.param("1m30s", 90.0, id="minutes and seconds"),
        pytest.param("1.5h", 5400.0, id="a fraction of hours"),
    ],
)
def test_duration_is_read_as_go_does(text: str, seconds: float) -> None:
    """Delays are Go durations."""
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "3", "s3", "3s!"])
def test_anything_else_is_no_duration(text: str) -> None:
    """A delay that is no duration is refused with the text it has."""
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        duration(text)


def test_a_duration_is_read_in_linear_time() -> None:
    """It stands in an annotation of a pod."""
    with cpu.at_most(2), pytest.raises(ValueError, match="is no duration"):
        duration("1" * 250_000)

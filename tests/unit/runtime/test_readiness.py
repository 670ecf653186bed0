"""Whether a function says that it is ready, and what it says when the cluster is not."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from shared.cluster import errors
from shared.objects.versions import HOW_TO_SWITCH_ON
from shared.runtime.readiness import Readiness
from tests.unit.runtime.fakes import FakeCluster


@pytest.mark.parametrize(
    ("served", "words"),
    [
        pytest.param({"v1beta1/workloads", "v1beta1/podgroups"}, "OK", id="1.37 with the API switched on"),
        pytest.param({"v1alpha2/workloads", "v1alpha2/podgroups"}, "OK", id="1.36 with the API switched on"),
        pytest.param(
            {"v1/priorityclasses"},
            f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs",
            id="the API is off: gates and runtime-config are named, and stamped pods can still be let go",
        ),
        pytest.param(
            {"v1beta1/workloads", "v1alpha2/podgroups"},
            f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs",
            id="half of it is as good as none",
        ),
    ],
)
def test_what_is_served(served: set[str], words: str) -> None:
    """Ready is who can reach the API server; the words tell what is missing there."""
    cluster = FakeCluster()
    cluster.served = frozenset(served)
    assert Readiness(cluster).ask() == (True, words)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.Unavailable("connection refused"), "Unavailable: connection refused"),
        (errors.Unauthorized("token expired"), "Unauthorized: token expired"),
    ],
)
def test_not_reached(error: Exception, words: str) -> None:
    """A function that cannot speak to the API server is not ready."""
    assert Readiness(FakeCluster(on_read=error)).ask() == (False, words)


def test_last_known_never_waits() -> None:
    """While an API server is silent the last answer is given at once, and it is asked only once."""
    asked, may_answer = threading.Semaphore(0), threading.Event()

    class Silent(FakeCluster):
        def served_versions(self, group: str) -> frozenset[str]:
            asked.release()
            may_answer.wait(5)
            return super().served_versions(group)

    readiness = Readiness(Silent())
    assert readiness.last_known() == (False, "the API server has not answered yet")
    assert asked.acquire(timeout=5)
    assert readiness.last_known() == (False, "the API server has not answered yet")
    assert not asked.acquire(blocking=False)
    may_answer.set()
    wait_for_answer(readiness)
    assert readiness.last_known() == (True, "OK")


def wait_for_answer(readiness: Any) -> None:
    """Wait until the question under way is answered."""
    assert readiness._asking.acquire(timeout=5)
    readiness._asking.release()

"""Functions or adapters that are away for a while, and Muster being removed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture
def without_adapters(muster_on_it: Muster) -> Iterator[Callable[[], None]]:
    """Stop the adapters at once, and start them when called or at the end; sweeps come by hand alone."""
    muster_on_it.stop_adapters()
    started: list[bool] = []

    def start() -> None:
        muster_on_it.start_adapters()
        started.append(True)

    with muster_on_it.without_sweeps():
        yield start
        if not started:
            start()


@pytest.mark.parametrize("function", ["create-workload", "create-pod-groups", "patch-pods"])
def test_a_function_that_was_down_catches_up(story: RealStory, muster_on_it: Muster, function: str) -> None:
    """While it is down the pods wait, gated; once it is back they run: retries, or else the next sweep."""
    story.add_nodes(2)
    with muster_on_it.without_function(function):
        story.create(a_job("sweep", pods=3))
        story.wait("three pods are made", lambda now: len(now.pods()) == 3)
        story.recording.quiet()
        assert story.running() == 0
    muster_on_it.sweep()
    story.wait("three pods run", lambda now: now.running() == 3)


def test_a_sweep_repairs_changes_made_while_the_adapters_were_down(
    story: RealStory, muster_on_it: Muster, without_adapters: Callable[[], None]
) -> None:
    """The adapters never replay what they missed; sweeps alone, one a step, bring the job to run."""
    story.add_nodes(2)
    story.create(a_trainjob("llama", "torch-distributed", nodes=3))
    story.wait("three pods are made", lambda now: len(now.pods()) == 3)
    story.recording.quiet()
    without_adapters()
    story.recording.quiet()
    assert story.groups() == {}, "nothing told Muster of this TrainJob"

    deadline = time.monotonic() + 60
    while story.running() < 3 and time.monotonic() < deadline:
        muster_on_it.sweep()
        muster_on_it.idle()
        story.recording.quiet(1)
    assert story.running() == 3


def test_an_owner_deleted_with_its_children_orphaned_leaves_nothing(
    story: RealStory, muster_on_it: Muster
) -> None:
    """A Job deleted with orphaned pods orphans its Workload and group too; a sweep takes those away."""
    story.add_nodes(1)
    job = story.create(a_job("sweep", pods=2))
    story.wait("two pods run", lambda now: now.running() == 2)

    story.delete_job_and_then_its_pods(job)
    muster_on_it.sweep()
    story.wait("Workload and group are gone", lambda now: not now.leftovers())

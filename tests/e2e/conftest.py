"""The real cluster with Muster on it, one for all stories, and a namespace for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from tests.cluster import cluster
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import Release
from tests.e2e.support import muster
from tests.e2e.support.muster import Muster
from tests.e2e.support.story import Story

RELEASE = "1.37"
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[Cluster]:
    """Kubernetes 1.37.1 with scheduler, controllers, JobSet, Trainer and KWOK; no nodes yet."""
    with cluster.running(cluster.Options(Release(RELEASE))) as made:
        yield made


@pytest.fixture(scope="session")
def muster_on_it(real_cluster: Cluster) -> Iterator[Muster]:
    """Muster, installed as the overlay for a cluster says."""
    with muster.installed(real_cluster, RELEASE) as installation:
        yield installation


@pytest.fixture
def tell(
    request: pytest.FixtureRequest, real_cluster: Cluster, muster_on_it: Muster
) -> Iterator[Callable[..., Story]]:
    """Begins stories; at the end of the test the laws of every story are checked on each."""
    stories: list[Story] = []

    def begin(*, opted_in: bool = True) -> Story:
        story = Story(real_cluster, f"story-{next(_NUMBERS)}", opted_in=opted_in)
        stories.append(story)
        if opted_in:
            assert muster.policies_at_work(real_cluster, story.namespace)
        return story

    request.node.stash[_STORIES] = stories
    before = len(muster_on_it.dead_letters)
    yield begin
    try:
        assert muster_on_it.idle(), "the broker still has events after 10 s"
        breaches = [breach for story in stories for breach in story.breaches()]
        assert not breaches, "\n".join([*breaches, *(story.told() for story in stories)])
        assert muster_on_it.dead_letters[before:] == [], "events that no function took"
    finally:
        for story in stories:
            story.end()


@pytest.fixture
def story(tell: Callable[..., Story]) -> Story:
    """A story in a namespace that opted in."""
    return tell()


_STORIES = pytest.StashKey[list[Story]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failed story what happened in it."""
    report = yield
    if report.when == "call" and report.failed:
        for story in item.stash.get(_STORIES, []):
            report.sections.append((f"what happened in {story.namespace}", _told(story)))
    del call
    return report


def _told(story: Story) -> Any:
    try:
        return story.told()
    except Exception as error:  # noqa: BLE001 - the failure of the story is what matters
        return f"cannot be told: {error!r}"

"""Fixtures of the stories: real clusters with Muster installed, and a namespace for each story."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.cluster.control_plane import Release
from tests.e2e.support import admission, muster
from tests.e2e.support.muster import Muster
from tests.e2e.support.story import RealStory

_E2E = Path(__file__).parent
_NUMBERS = itertools.count(1)
_STORIES = pytest.StashKey[list[RealStory]]()


@dataclass
class RealStage:
    """A cluster with Muster installed from an overlay of eventing/; stories run on it one after the other."""

    options: ClusterOptions
    overlay: str
    cluster: RealCluster
    muster: Muster
    stops: contextlib.ExitStack


class Stages:
    """The current stage of this process; a test module that needs another one replaces it."""

    def __init__(self) -> None:
        self._stage: RealStage | None = None
        self._spoiled = False

    def get(self, options: ClusterOptions, overlay: str) -> RealStage:
        """Return the stage with these options; stop the current one if it differs."""
        stage = self._stage
        if stage and (stage.options, stage.overlay) == (options, overlay) and not self._spoiled:
            return stage
        self.close()
        with contextlib.ExitStack() as stops:
            cluster = stops.enter_context(running(options))
            installation = stops.enter_context(muster.installed(cluster, overlay))
            self._stage = RealStage(options, overlay, cluster, installation, stops.pop_all())
        return self._stage

    def close(self) -> None:
        """Stop the current stage."""
        if self._stage:
            self._stage.stops.close()
        self._stage = None
        self._spoiled = False

    def switch(self, release: Release) -> None:
        """Restart the API server of the current stage with other API versions, and mark it spoiled."""
        assert self._stage, "nothing stands"
        self._stage.cluster.switch(release)
        self.spoil()

    def spoil(self) -> None:
        """Note the current stage as changed, so that no other test gets it."""
        self._spoiled = True


@pytest.fixture(scope="session")
def stages() -> Iterator[Stages]:
    """The stages of this run. Tests that use this fixture change their stage and run after the others."""
    stages = Stages()
    yield stages
    stages.close()


@pytest.fixture
def stage(stages: Stages, request: pytest.FixtureRequest) -> RealStage:
    """The stage for ``OPTIONS`` and ``OVERLAY`` of the test module; by default 1.37 with everything."""
    return stages.get(*_options_of(request.module))


def _options_of(module: ModuleType) -> tuple[ClusterOptions, str]:
    options: ClusterOptions = getattr(module, "OPTIONS", ClusterOptions())
    overlay = "kubernetes-1.36" if options.release.minor == "1.36" else "cluster"
    return options, getattr(module, "OVERLAY", overlay)


@pytest.fixture
def muster_on_it(stage: RealStage) -> Muster:
    """Muster as installed on the stage."""
    return stage.muster


@pytest.fixture
def begin_story(request: pytest.FixtureRequest, stage: RealStage) -> Iterator[Callable[..., RealStory]]:
    """Return a function that begins a story; at the end of the test the laws are checked on each story."""
    stories: list[RealStory] = []

    def begin(*, opted_in: bool = True) -> RealStory:
        story = RealStory(stage.cluster, f"story-{next(_NUMBERS)}", opted_in=opted_in)
        stories.append(story)
        if opted_in:
            assert admission.policies_at_work(stage.cluster.api, story.namespace)
        stage.muster.settle()
        return story

    request.node.stash[_STORIES] = stories
    before = len(stage.muster.dead_letters)
    yield begin
    try:
        assert stage.muster.idle(), "the broker still has events"
        breaches = [breach for story in stories for breach in story.breaches()]
        assert not breaches, "\n".join([*breaches, *(story.as_text() for story in stories)])
        lost = stage.muster.dead_letters[before:]
        assert lost == [], "\n".join(["events that no function took:", *lost])
    finally:
        for story in stories:
            story.end()


@pytest.fixture
def story(begin_story: Callable[..., RealStory]) -> RealStory:
    """A story in a namespace with the label that enables mark-jobs and mark-jobsets."""
    return begin_story()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the stories by stage; those that change their stage come last.

    The default stage is the first. The others come in the order of their modules' names, whatever the folder,
    so that those with Knative do not stand at the same time.
    """
    stories = [item for item in items if isinstance(item, pytest.Function) and _E2E in item.path.parents]
    default = _options_of(ModuleType("default"))
    by_name = sorted(stories, key=lambda story: story.path.name)
    stages = list(dict.fromkeys([default, *(_options_of(story.module) for story in by_name)]))
    order: dict[pytest.Item, tuple[int, bool]] = {
        story: (stages.index(_options_of(story.module)), "stages" in signature(story.function).parameters)
        for story in stories
    }
    items.sort(key=lambda item: order.get(item, (-1, False)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timeline of each story to the report of a failed test."""
    report = yield
    if report.when == "call" and report.failed:
        for story in item.stash.get(_STORIES, []):
            report.sections.append((f"what happened in {story.namespace}", _timeline(story)))
    del call
    return report


def _timeline(story: RealStory) -> Any:
    try:
        return story.as_text()
    except Exception as error:  # noqa: BLE001 - the failure of the story is what matters
        return f"cannot be told: {error!r}"

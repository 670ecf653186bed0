"""Fixtures of the stories: real clusters with Muster installed, and a namespace for each story."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from types import ModuleType
from typing import Any

import pytest

from muster.files import EVENTING
from muster.kustomize import load
from tests.cluster import audit
from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.cluster.control_plane import Release
from tests.e2e.support import admission, muster
from tests.e2e.support.muster import Muster
from tests.e2e.support.rights import Rights
from tests.e2e.support.seen import Seen, forget
from tests.e2e.support.story import RealStory
from tests.e2e.support.whole_run import is_story

COMPONENT = load(EVENTING / "components" / "suspend-after-timeout")
"""Installed by some stories beside the overlay of their stage."""

_NUMBERS = itertools.count(1)
_STORIES = pytest.StashKey[list[RealStory]]()
_SEEN = pytest.StashKey[Seen]()


@dataclass
class RealStage:
    """A cluster with Muster installed from an overlay of eventing/; stories run on it one after the other."""

    options: ClusterOptions
    overlay: str
    cluster: RealCluster
    muster: Muster
    stops: contextlib.ExitStack


class Stages:
    """The current stage of this process; a test module that needs another one replaces it.

    Args:
        rights: collects the permissions granted to Muster and those it used, from each stage at its end.
    """

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._audited = 0
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
            self._note_rights(self._stage)
            self._stage.stops.close()
        self._stage = None
        self._audited = 0
        self._spoiled = False

    def switch(self, release: Release) -> None:
        """Restart the API server of the current stage with other gates or API versions, and mark it spoiled.

        Refusals of a server that has not read its roles yet do not count as missing permissions.
        """
        assert self._stage, "nothing stands"
        self._note_rights(self._stage)
        self._stage.cluster.switch(release)
        self._audited = audit.size(self._stage.cluster.audit_log)
        self.spoil()

    def _note_rights(self, stage: RealStage) -> None:
        events = audit.events_since(stage.cluster.audit_log, self._audited)
        self._rights.add([*stage.muster.manifests, *COMPONENT], events)

    def spoil(self) -> None:
        """Note the current stage as changed, so that no other test gets it."""
        self._spoiled = True


@pytest.fixture(scope="session")
def stages(pytestconfig: pytest.Config) -> Iterator[Stages]:
    """The stages of this run. Tests that use this fixture change their stage and run after the others."""
    stages = Stages(pytestconfig.stash[_SEEN].rights)
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
    """A story in a namespace with the label that enables mark-jobs."""
    return begin_story()


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the record of this run for tests/rights."""
    config.stash[_SEEN] = Seen()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Remove the record of the previous run, in xdist's controller, before any worker begins a story."""
    if any(is_story(node.config.rootpath / test.partition("::")[0]) for test in ids):
        forget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the stories by stage; those that change their stage come last.

    The default stage is the first. The others come in the order of their modules' names, whatever the folder,
    so that those with Knative do not stand at the same time.
    """
    stories = [item for item in items if isinstance(item, pytest.Function) and is_story(item.path)]
    default = _options_of(ModuleType("default"))
    by_name = sorted(stories, key=lambda story: story.path.name)
    stages = list(dict.fromkeys([default, *(_options_of(story.module) for story in by_name)]))
    order: dict[pytest.Item, tuple[int, bool]] = {
        story: (stages.index(_options_of(story.module)), "stages" in signature(story.function).parameters)
        for story in stories
    }
    items.sort(key=lambda item: order.get(item, (-1, False)))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Record the stories that were deselected."""
    for item in items:
        if is_story(item.path):
            item.config.stash[_SEEN].run.left_out.add(item.nodeid)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Record the collected files; remove the record of the previous run if there are stories among them."""
    run = session.config.stash[_SEEN].run
    run.collected |= {item.path for item in session.items}
    if _has_stories(session) and not hasattr(session.config, "workerinput"):
        forget()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the record of this process for the comparison of permissions (tests/rights)."""
    if _has_stories(session):
        session.config.stash[_SEEN].keep(os.environ.get("PYTEST_XDIST_WORKER", "main"))


def _has_stories(session: pytest.Session) -> bool:
    return any(is_story(path) for path in session.config.stash[_SEEN].run.collected)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timeline of each story to the report of a failed test."""
    report = yield
    if is_story(item.path) and report.outcome != "passed":
        item.config.stash[_SEEN].run.failed.add(item.nodeid)
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

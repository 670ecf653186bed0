"""Real clusters with Muster on them, and a namespace for each story."""

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

from tests.cluster import audit
from tests.cluster.cluster import Cluster, Options, running
from tests.cluster.control_plane import Release
from tests.e2e.support import admission, muster
from tests.e2e.support.muster import Muster
from tests.e2e.support.rights import Rights
from tests.e2e.support.seen import Seen, forget
from tests.e2e.support.story import Story
from tests.e2e.support.whole_run import STORIES

_NUMBERS = itertools.count(1)
_STORIES = pytest.StashKey[list[Story]]()
_SEEN = pytest.StashKey[Seen]()


@dataclass
class Stage:
    """Where stories take place: a cluster with Muster on it, installed as an overlay of eventing/ says."""

    options: Options
    overlay: str
    cluster: Cluster
    muster: Muster
    stops: contextlib.ExitStack


class Stages:
    """One stage at a time; the next test module may ask for another one.

    Args:
        rights: gets what Muster was granted and did on the stages that were taken down.
    """

    def __init__(self, rights: Rights) -> None:
        self._rights = rights
        self._audited = 0
        self._stage: Stage | None = None
        self._spoiled = False

    def get(self, options: Options, overlay: str) -> Stage:
        """Returns the stage of such a cluster; another one that stands is taken down first."""
        stage = self._stage
        if stage and (stage.options, stage.overlay) == (options, overlay) and not self._spoiled:
            return stage
        self.close()
        with contextlib.ExitStack() as stops:
            cluster = stops.enter_context(running(options))
            installation = stops.enter_context(muster.installed(cluster, overlay))
            self._stage = Stage(options, overlay, cluster, installation, stops.pop_all())
        return self._stage

    def close(self) -> None:
        """Takes down what stands."""
        if self._stage:
            self._note_rights(self._stage)
            self._stage.stops.close()
        self._stage = None
        self._audited = 0
        self._spoiled = False

    def switch(self, release: Release) -> None:
        """Starts the API server of the stage that stands anew, with other gates or API versions; spoils it.

        What the server refuses until it knows its roles is no lack of them.
        """
        assert self._stage, "nothing stands"
        self._note_rights(self._stage)
        self._stage.cluster.switch(release)
        self._audited = audit.size(self._stage.cluster.audit_log)
        self.spoil()

    def _note_rights(self, stage: Stage) -> None:
        events = audit.events_since(stage.cluster.audit_log, self._audited)
        self._rights.add(stage.muster.manifests, events)

    def spoil(self) -> None:
        """Says that what stands is no longer what its options say, so that nobody gets it again."""
        self._spoiled = True


@pytest.fixture(scope="session")
def stages(pytestconfig: pytest.Config) -> Iterator[Stages]:
    """The stages of this run; who asks for them spoils one, and comes after those who do not."""
    made = Stages(pytestconfig.stash[_SEEN].rights)
    yield made
    made.close()


@pytest.fixture
def stage(stages: Stages, request: pytest.FixtureRequest) -> Stage:
    """The stage that the test module asks for with ``OPTIONS`` and ``OVERLAY``; else 1.37 with everything."""
    return stages.get(*_asked_for(request.module))


def _asked_for(module: ModuleType) -> tuple[Options, str]:
    options: Options = getattr(module, "OPTIONS", Options())
    overlay = "kubernetes-1.36" if options.release.minor == "1.36" else "cluster"
    return options, getattr(module, "OVERLAY", overlay)


@pytest.fixture
def muster_on_it(stage: Stage) -> Muster:
    """Muster, installed as the overlay for a cluster of that release says."""
    return stage.muster


@pytest.fixture
def tell(request: pytest.FixtureRequest, stage: Stage) -> Iterator[Callable[..., Story]]:
    """Begins stories; at the end of the test the laws of every story are checked on each."""
    stories: list[Story] = []

    def begin(*, opted_in: bool = True) -> Story:
        story = Story(stage.cluster, f"story-{next(_NUMBERS)}", opted_in=opted_in)
        stories.append(story)
        if opted_in:
            assert admission.policies_at_work(stage.cluster.api, story.namespace)
        return story

    request.node.stash[_STORIES] = stories
    before = len(stage.muster.dead_letters)
    yield begin
    try:
        assert stage.muster.idle(), "the broker still has events"
        breaches = [breach for story in stories for breach in story.breaches()]
        assert not breaches, "\n".join([*breaches, *(story.told() for story in stories)])
        lost = stage.muster.dead_letters[before:]
        assert lost == [], "\n".join(["events that no function took:", *lost])
    finally:
        for story in stories:
            story.end()


@pytest.fixture
def story(tell: Callable[..., Story]) -> Story:
    """A story in a namespace that opted in."""
    return tell()


def pytest_configure(config: pytest.Config) -> None:
    """Begins to note what this run sees and leaves out."""
    config.stash[_SEEN] = Seen()
    if not hasattr(config, "workerinput"):  # the only process, or the one that starts the others
        forget()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts the stories of a stage together, those that spoil it last."""
    stories = [item for item in items if isinstance(item, pytest.Function) and item.path.parent == STORIES]
    spoiling = {item.path for item in stories if "stages" in signature(item.function).parameters}
    stages = list(dict.fromkeys(_asked_for(item.module) for item in stories))
    places: dict[pytest.Item, tuple[int, bool]] = {
        story: (stages.index(_asked_for(story.module)), story.path in spoiling) for story in stories
    }
    items.sort(key=lambda item: places.get(item, (-1, False)))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Notes stories that somebody chose to leave out."""
    for item in items:
        if item.path.parent == STORIES:
            item.config.stash[_SEEN].run.left_out.add(item.nodeid)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Notes which stories there are in this run."""
    session.config.stash[_SEEN].run.collected |= {item.path for item in session.items}


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keeps what this process saw for the comparison of rights (tests/rights)."""
    session.config.stash[_SEEN].keep(os.environ.get("PYTEST_XDIST_WORKER", "main"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failed story what happened in it."""
    report = yield
    if item.path.parent == STORIES and report.outcome != "passed":
        item.config.stash[_SEEN].run.failed.add(item.nodeid)
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

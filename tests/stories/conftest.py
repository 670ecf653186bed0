"""The local stack, started once for each test module."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from muster.cluster.http.connections import Connections
from muster.local.stack import Stack
from muster.local.stories.story import LocalStory, StoryRun
from muster.local.stories.watching import TimelineRecorder
from muster.replay.activity import Activity
from muster.simulator.apiserver import ApiServer
from muster.simulator.overlays import CLUSTER


class ObservedStack:
    """A running local stack, its recorder, and the activities of its functions."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, activities: list[Activity]) -> None:
        self.stack = stack
        self.recorder = recorder
        self.activities = activities

    def check_story(self, story: LocalStory) -> StoryRun:
        """Run a story; every check passes, and no event becomes a dead letter."""
        run = StoryRun(story, self.stack.client, self.recorder)
        run.run()
        assert [check for check in run.checks if not check.passed] == [], self.activities
        assert self.stack.dead_letters == []
        return run


@contextmanager
def observed(overlay: Path = CLUSTER) -> Iterator[ObservedStack]:
    """Run the local stack of an overlay, and watch it."""
    activities: list[Activity] = []
    with Stack(overlay, activities.append) as stack, TimelineRecorder(stack.client) as recorder:
        yield ObservedStack(stack, recorder, activities)


@pytest.fixture(scope="module")
def observed_stack() -> Iterator[ObservedStack]:
    """The local stack as `muster run` starts it."""
    with observed() as stack:
        yield stack


@pytest.fixture(scope="module")
def in_process() -> Iterator[None]:
    """Clients call embedded API servers without HTTP, half of the work of a story, for all but watches."""
    servers: dict[str, ApiServer] = {}
    start, receive = ApiServer.start, Connections.receive

    def started(server: ApiServer) -> ApiServer:
        start(server)
        servers[server.url] = server
        return server

    def received(
        self: Connections, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        if self.url not in servers:
            return receive(self, method, path, query, body, content_type)
        headers = {"user-agent": self._user_agent, "content-type": content_type, **self._credentials()}
        parameters = {name: value for name, value in query.items() if value}
        content = b"" if body is None else json.dumps(body).encode()
        return servers[self.url].answer(method, path, parameters, headers, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ApiServer, "start", started)
        patch.setattr(Connections, "receive", received)
        yield

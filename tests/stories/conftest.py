"""The local stack, started once for each test module."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from muster.cluster.http.connections import Connections
from muster.local.stories.story import LocalStory, StoryRun
from muster.simulator.apiserver import ApiServer
from muster.testing import RunningStack


def check_story(stack: RunningStack, story: LocalStory) -> StoryRun:
    """Run a story; every check passes, and no event becomes a dead letter."""
    run = StoryRun(story, stack.client, stack.recorder)
    run.run()
    assert [check for check in run.checks if not check.passed] == [], stack.activities
    assert stack.dead_letters() == []
    return run


@pytest.fixture(scope="module")
def running_stack() -> Iterator[RunningStack]:
    """The local stack as `muster run` starts it."""
    with RunningStack() as stack:
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

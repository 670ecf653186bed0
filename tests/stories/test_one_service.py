"""The overlay one-service: the same stories and rules, with one server and one account for all functions."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
import urllib3

from muster.local.stories.story import STORIES, LocalStory
from muster.runtime import steps
from muster.simulator.overlays import built
from muster.testing import RunningStack
from tests.cluster.processes import until
from tests.stories.conftest import check_story

SERVED = sorted(set(steps.step_names()) - steps.OPTIONAL)


@pytest.fixture(scope="module")
def one_service() -> Iterator[RunningStack]:
    """The local stack of the overlay."""
    with RunningStack(built("one-service")) as stack:
        yield stack


@pytest.mark.parametrize("story", [pytest.param(story, id=story.title) for story in STORIES.values()])
def test_a_story_holds(one_service: RunningStack, story: LocalStory) -> None:
    """Every rule of the story holds, and no event becomes a dead letter."""
    check_story(one_service, story)


def test_the_functions_are_one_server(one_service: RunningStack) -> None:
    """At six paths of one address, with the metrics of all of them in one text."""
    urls = one_service.stack.function_urls
    assert {urlsplit(url).path for url in urls.values()} == {f"/{name.replace('_', '-')}" for name in SERVED}
    (address,) = {urlsplit(url).netloc for url in urls.values()}
    text = urllib3.request("GET", f"http://{address}/metrics").data.decode()
    assert [name for name in SERVED if f'function="{name}"' not in text] == []
    readiness = f"http://{address}/health/readiness"
    assert until(lambda: urllib3.request("GET", readiness).data == b"OK\n", 30)

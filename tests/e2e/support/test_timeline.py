"""The recording of a namespace over HTTP, which cannot be read if it has gaps.

The recorder itself is tested in tests/unit/local/test_watching.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer
from tests.cluster.api import MERGE_PATCH, KubernetesApi
from tests.e2e.support.timeline import StoryRecording

HOME = "team-a"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with the namespace of the story and another one."""
    with ApiServer() as server:
        for name in (HOME, "team-b"):
            KubernetesApi(server.url).must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        yield server


@pytest.fixture
def api(server: ApiServer) -> KubernetesApi:
    """The API of that server."""
    return KubernetesApi(server.url)


def _jobs(namespace: str = HOME) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def _job(name: str) -> dict[str, object]:
    containers = [{"name": "main", "image": "example.com/train"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def test_an_interruption_ends_the_watches_and_is_no_gap(api: KubernetesApi) -> None:
    """The watches last an hour, so they have to be ended; what changed meanwhile is recorded after it."""
    recording = StoryRecording(api, HOME)
    api.must("POST", _jobs(), _job("stays"))
    recording.wait("the Job is seen", lambda now: now.now("Job"))
    with recording.interrupted():
        before = recording.entries()
        api.must("POST", _jobs(), _job("comes"))
        assert recording.entries() == before
    assert set(recording.now("Job")) == {"stays", "comes"}
    api.must("PATCH", f"{_jobs()}/stays", {"spec": {"parallelism": 3}}, MERGE_PATCH)
    recording.wait("it watches on", lambda now: now.now("Job")["stays"]["spec"]["parallelism"] == 3)
    recording.stop()


def test_a_story_is_not_judged_by_a_recording_with_a_gap(server: ApiServer, api: KubernetesApi) -> None:
    """The server went away outside an interruption: the missed changes are unknown."""
    recording = StoryRecording(api, HOME)
    api.must("POST", _jobs(), _job("one"))
    recording.wait("the Job is seen", lambda now: "one" in now.now("Job"))
    server.stop()
    with pytest.raises(AssertionError, match="the recording has gaps"):
        recording.wait("never", lambda now: not now.entries(), 10)
    recording.stop()

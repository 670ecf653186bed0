"""The recording of a story: what it has seen, also over a time in which the API server was away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer
from tests.cluster.api import MERGE_PATCH, Api
from tests.e2e.support.timeline import Recording

HOME = "team-a"
JOBS = f"/apis/batch/v1/namespaces/{HOME}/jobs"


@pytest.fixture
def api() -> Iterator[Api]:
    """A server with the namespace of the story."""
    with ApiServer() as server:
        api = Api(server.url)
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
        yield api


def _job(name: str) -> dict[str, object]:
    containers = [{"name": "main", "image": "example.com/train"}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def test_what_changed_in_an_interruption_is_told_after_it(api: Api) -> None:
    """One entry each for what was made, changed or deleted, none for what stayed; then it watches on."""
    recording = Recording(api, HOME)
    for name in ("stays", "changes", "goes"):
        api.must("POST", JOBS, _job(name))
    recording.wait("three Jobs are seen", lambda now: len(now.now("Job")) == 3)
    with recording.interrupted():
        before = recording.entries()
        api.must("POST", JOBS, _job("comes"))
        api.must("PATCH", f"{JOBS}/changes", {"spec": {"parallelism": 2}}, MERGE_PATCH)
        api.must("DELETE", f"{JOBS}/goes", query={"propagationPolicy": "Background"})
        assert recording.entries() == before

    told = [(entry.change, entry.name) for entry in recording.entries() if entry not in before]
    assert sorted(told) == [("ADDED", "comes"), ("DELETED", "goes"), ("MODIFIED", "changes")]
    assert set(recording.now("Job")) == {"stays", "changes", "comes"}
    api.must("PATCH", f"{JOBS}/stays", {"spec": {"parallelism": 3}}, MERGE_PATCH)
    recording.wait("it watches on", lambda now: now.now("Job")["stays"]["spec"]["parallelism"] == 3)
    recording.stop()


def test_a_watch_that_the_server_ends_goes_on_where_it_ended(api: Api) -> None:
    """As the server does with a reader that is too slow: nothing is lost, and nothing is told twice."""
    recording = Recording(api, HOME, watch_seconds=1)
    for number in range(6):
        api.must("POST", JOBS, _job(f"job-{number}"))
        time.sleep(0.5)
    recording.wait("all Jobs are seen", lambda now: len(now.now("Job")) == 6)
    assert [entry.name for entry in recording.entries()] == [f"job-{number}" for number in range(6)]
    recording.stop()


def test_a_watch_that_is_refused_is_a_gap(api: Api) -> None:
    """A story must not be judged by what was not seen."""
    recording = Recording(api, HOME)
    api.must("POST", JOBS, _job("one"))
    recording.wait("the Job is seen", lambda now: "one" in now.now("Job"))
    recording.follow("Widget", "/apis/example.com/v1/widgets")
    with pytest.raises(AssertionError, match="the recording has gaps"):
        recording.wait("never", lambda now: not now.entries(), 10)

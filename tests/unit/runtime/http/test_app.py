"""The Flask app: accepted methods, paths and sizes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from muster.cluster import errors
from muster.events.model import ResourceEvent
from muster.objects.meta import ObjectRef
from muster.runtime.config import Settings
from muster.runtime.http.app import create_app
from tests.unit.runtime.fakes import BODY, NOW, FakeCluster, a_step, an_event

RECORDED = Path(__file__).parents[2] / "events" / "recorded"
STRUCTURED = {"content-type": "application/cloudevents+json"}


def a_client(cluster: Any = None, **settings: Any) -> FlaskClient:
    """A client of the app of the step in `fakes`."""
    return create_app(a_step(), cluster or FakeCluster(), Settings(**settings), lambda: NOW).test_client()


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_recorded_events_are_taken(path: Path, mode: str) -> None:
    """Events of Resource and Reference mode are taken, in both modes of HTTP."""
    event = json.loads(path.read_text())
    cluster = FakeCluster()
    if mode == "structured":
        answer = a_client(cluster).post("/", headers=STRUCTURED, data=json.dumps(event))
    else:
        headers = {
            f"ce-{name}": value for name, value in event.items() if name not in {"data", "datacontenttype"}
        }
        answer = a_client(cluster).post(
            "/", headers=headers | {"content-type": "application/json"}, data=json.dumps(event["data"])
        )
    assert answer.status_code == 200
    assert answer.headers["ce-id"] == f"{event['id']}.patch_pods"
    assert cluster.calls[0].endswith(f"{event['namespace']}/{event['name']}")


def test_answer_without_body_has_no_content_type() -> None:
    """A broker would look for an event of that type in the empty answer."""
    headers, body = an_event(type="com.example.order")
    answer = a_client().post("/", headers=headers, data=body)
    assert (answer.status_code, answer.data) == (202, b"")
    assert "Content-Type" not in answer.headers
    assert answer.headers["Content-Length"] == "0"


def test_an_empty_path_is_no_redirect() -> None:
    """No broker follows one: the event would be lost."""
    headers, body = an_event()
    answer = a_client().post("/", headers=headers, data=body, environ_overrides={"PATH_INFO": ""})
    assert answer.status_code == 200


def test_retry_after_reaches_the_sender() -> None:
    """Retry-After and the reason are in the HTTP answer itself."""
    headers, body = an_event()
    cluster = FakeCluster(on_read=errors.TooManyRequests("slow down", retry_after=7))
    answer = a_client(cluster).post("/", headers=headers, data=body)
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "7")
    assert answer.get_json() == {"reason": "TooManyRequests", "message": "slow down"}


@pytest.mark.parametrize(
    ("headers", "body", "path"),
    [
        pytest.param({}, b"{}", "content-type", id="no event at all"),
        pytest.param(STRUCTURED, b"{", "body", id="broken JSON"),
        pytest.param(
            {"content-type": "application/cloudevents-batch+json"}, b"[]", "content-type", id="a batch"
        ),
    ],
)
def test_bad_input_is_400_with_its_path(headers: dict[str, str], body: bytes, path: str) -> None:
    """An event that cannot be read is refused with the reason and the path of the fault."""
    answer = a_client().post("/", headers=headers, data=body)
    content = answer.get_json()
    assert (answer.status_code, content["reason"]) == (400, "UnreadableEvent")
    assert path in content["message"]


def test_body_of_10_mib_is_413(caplog: pytest.LogCaptureFixture) -> None:
    """A body above the limit is not read; a broker does not send it again, the log has its line."""
    headers, _ = an_event()
    answer = a_client().post("/", headers=headers, data=b" " * (10 * 1024 * 1024))
    assert answer.status_code == 413
    content = answer.get_json()
    assert content["reason"] == "BodyTooLarge"
    for fact in ("10485760", "4194304", "MUSTER_BODY_LIMIT_BYTES"):
        assert fact in content["message"]
    assert caplog.messages == [content["message"]]


def test_limit_can_be_set() -> None:
    """A body is measured against the setting, and one of just that size is read."""
    headers, body = an_event()
    assert a_client(body_limit_bytes=len(body)).post("/", headers=headers, data=body).status_code == 200
    assert a_client(body_limit_bytes=len(body) - 1).post("/", headers=headers, data=body).status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("POST", "/events", 404, id="events are taken at / only"),
        pytest.param("PUT", "/", 405, id="and by POST only"),
    ],
)
def test_other_doors_are_closed(method: str, path: str, status: int) -> None:
    """Another path or method is refused with the one that works."""
    answer = a_client().open(path, method=method)
    assert answer.status_code == status
    assert "POST /" in answer.text
    assert ("Allow" in answer.headers) == (status == 405)


def test_get_explains() -> None:
    """A person with a browser reads what this is."""
    answer = a_client().get("/")
    assert answer.status_code == 200
    assert "patch_pods" in answer.text


def test_liveness_sends_no_request() -> None:
    """A function is alive while the API server is away; restarting it would not help."""
    cluster = FakeCluster(on_read=errors.Unavailable("away"))
    assert a_client(cluster).get("/health/liveness").status_code == 200
    assert cluster.calls == []


@pytest.mark.parametrize(
    ("cluster", "status", "facts"),
    [
        pytest.param(FakeCluster(), 200, ("OK",), id="ready when the API server answers"),
        pytest.param(
            FakeCluster(on_read=errors.Unavailable("refused")),
            503,
            ("Unavailable", "refused"),
            id="not ready when it does not",
        ),
    ],
)
def test_readiness(cluster: FakeCluster, status: int, facts: tuple[str, ...]) -> None:
    """Readiness names the reason when the API server does not answer."""
    answer = a_client(cluster).get("/health/readiness")
    assert answer.status_code == status
    assert [fact for fact in facts if fact not in answer.text] == []


def test_readiness_waits_for_the_answer() -> None:
    """A probe over HTTP has a thread of its own, and gets the current state."""

    class Slow(FakeCluster):
        def served_versions(self, group: str) -> frozenset[str]:
            time.sleep(0.02)
            return super().served_versions(group)

    assert a_client(Slow()).get("/health/readiness").status_code == 200


def test_the_body_reaches_the_step_unchanged() -> None:
    """What is sent is what the step gets, non-ASCII included."""
    seen: list[Any] = []

    def predicate(event: ResourceEvent) -> ObjectRef:
        seen.append(event.object)
        return event.ref

    step = a_step(predicate=predicate)
    client = create_app(step, FakeCluster(), Settings(), lambda: NOW).test_client()
    headers, _ = an_event()
    body = {**BODY, "note": "Gänge ✓"}
    client.post("/", headers=headers, data=json.dumps(body, ensure_ascii=False).encode())
    assert seen == [body]

"""Resending events over HTTP: timing, requests, and the evaluation of the answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muster.replay.files import BadFileError
from muster.replay.recorded_requests import STRUCTURED, RecordedRequest
from muster.replay.resending import ContentMode, outgoing, resend, send_times
from muster.simulator.broker import Answer, NoAnswerError

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
ENVELOPE = {
    "specversion": "1.0",
    "id": "1",
    "source": "/test",
    "type": "dev.knative.apiserver.resource.add",
    "datacontenttype": "application/json",
    "data": {"kind": "Job"},
}
REPLY = {"ce-specversion": "1.0", "ce-id": "1.x", "ce-source": "/x", "ce-type": "dev.muster.x.created"}


def recorded(**changed: Any) -> RecordedRequest:
    """A recorded event."""
    body = json.dumps({**ENVELOPE, **changed}).encode()
    return RecordedRequest({"content-type": STRUCTURED}, body, "e.jsonl:1")


def test_each_content_mode_carries_the_event() -> None:
    """Binary as the source sends it; structured as one JSON object."""
    _, headers, body = outgoing(recorded(), ContentMode.BINARY)
    assert (headers["Ce-Id"], headers["Content-Type"]) == ("1", "application/json")
    assert json.loads(body) == {"kind": "Job"}
    _, headers, body = outgoing(recorded(), ContentMode.STRUCTURED)
    assert headers == {"Content-Type": STRUCTURED}
    assert json.loads(body) == ENVELOPE


def test_broken_json_has_no_structured_mode() -> None:
    """A captured request may hold it, and can only be sent as it came."""
    broken = RecordedRequest({**REPLY, "content-type": "application/json"}, b"{", "e.json")
    assert outgoing(broken, ContentMode.BINARY)[2] == b"{"
    with pytest.raises(BadFileError, match=r"e\.json"):
        outgoing(broken, ContentMode.STRUCTURED)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Answer(202), (True, "", ""), id="delivered without a word"),
        pytest.param(
            Answer(200, {**REPLY, "content-type": "application/json"}, b"{}"),
            (True, "dev.muster.x.created", ""),
            id="delivered, and answered by an event",
        ),
        pytest.param(
            Answer(409, {}, b'{"reason": "Conflict", "message": "changed"}'),
            (False, "", "Conflict: changed"),
            id="come again",
        ),
        pytest.param(Answer(400, {}, b"needs an id\nmore"), (False, "", "needs an id"), id="refused"),
        pytest.param(
            Answer(200, {}, b"ok"), (False, "", "with a body that is not a CloudEvent"), id="no event"
        ),
        pytest.param(None, (False, "", "connection refused"), id="no answer"),
    ],
)
def test_an_answer_is_judged_as_a_broker_judges_it(
    answer: Answer | None, expected: tuple[bool, str, str]
) -> None:
    """Delivered is 2xx with an empty body or exactly one event."""

    def target(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG001
        if answer is None:
            raise NoAnswerError("connection refused")
        return answer

    (sent,) = resend([recorded()], ContentMode.BINARY, target)
    assert (sent.delivered, sent.reply, sent.reason) == expected


def test_recorded_times_are_kept_in_ascending_order_at_any_speed() -> None:
    """The first event at once; one without a time too; speed 0 does not wait."""
    times = [(NOW + timedelta(seconds=after)).isoformat() for after in (4, 0, 2)]
    stream = [recorded(time=time) for time in times]
    assert send_times(stream, 2) == [0.0, 1.0, 2.0]
    assert send_times([*stream, recorded()], 1) == [0.0, 0.0, 2.0, 4.0]
    assert send_times(stream, 0) == [0.0, 0.0, 0.0]

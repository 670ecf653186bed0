"""Resending events over HTTP: timing, requests, and the evaluation of the answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest

from muster.replay import resending
from muster.replay.files import BadFileError
from muster.replay.recorded_requests import STRUCTURED, RecordedRequest
from muster.replay.resending import ContentMode, Pace, SentEvent, outgoing, resend, send_times
from muster.simulator.broker import Answer, CloudEvent, NoAnswerError
from tests.unit.runtime.fakes import NOW

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
    return RecordedRequest(
        {"content-type": STRUCTURED}, json.dumps({**ENVELOPE, **changed}).encode(), "e.jsonl:1"
    )


def ready(*seconds: float) -> list[RecordedRequest]:
    """Events that were sent so many seconds after NOW; their ids are the seconds."""
    return [recorded(id=str(after), time=(NOW + timedelta(seconds=after)).isoformat()) for after in seconds]


class _TimedFunction:
    """Answers as configured, and knows what came when."""

    def __init__(self, answer: Answer | None = None) -> None:
        self._answer = answer
        self.began = monotonic()
        self.came: list[tuple[Mapping[str, str], bytes]] = []
        self.times: list[float] = []
        self.patience: list[float | None] = []

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        self.came.append((headers, body))
        self.times.append(monotonic() - self.began)
        self.patience.append(timeout)
        if self._answer is None:
            raise NoAnswerError("connection refused")
        return self._answer


def answered(answer: Answer | None) -> SentEvent:
    """The fields recorded of an answer."""
    (sent,) = resend(ready(0), ContentMode.BINARY, _TimedFunction(answer), Pace(), threading.Event())
    return sent


def test_binary_mode_equals_the_request_of_the_source() -> None:
    """Attributes as headers, data as the body, the id as it was: a retry keeps it too."""
    one = outgoing(recorded(), ContentMode.BINARY)
    assert one.headers == {
        "Ce-Specversion": "1.0",
        "Ce-Id": "1",
        "Ce-Source": "/test",
        "Ce-Type": "dev.knative.apiserver.resource.add",
        "Content-Type": "application/json",
    }
    assert json.loads(one.body) == {"kind": "Job"}


def test_structured_mode_is_one_json_object() -> None:
    """The line of the file as it stands."""
    one = outgoing(recorded(), ContentMode.STRUCTURED)
    assert one.headers == {"Content-Type": STRUCTURED}
    assert json.loads(one.body) == ENVELOPE


def test_structured_mode_escapes_no_characters() -> None:
    """Escaped, an emoji has twelve bytes in place of four."""
    assert "é".encode() in outgoing(recorded(data={"name": "é"}), ContentMode.STRUCTURED).body


def test_a_request_is_made_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them would take as much memory as the events again."""
    made: list[str] = []

    def counted(request: RecordedRequest, mode: ContentMode) -> Any:
        made.append(request.location)
        return outgoing(request, mode)

    monkeypatch.setattr(resending, "outgoing", counted)
    sent = resend(
        ready(0, 0, 0), ContentMode.STRUCTURED, _TimedFunction(Answer(202)), Pace(), threading.Event()
    )
    next(sent)
    assert len(made) == 1


def test_broken_json_has_no_structured_mode() -> None:
    """A captured request may hold it, and can only be sent as it came."""
    broken = RecordedRequest({**REPLY, "content-type": "application/json"}, b"{", "e.json")
    assert outgoing(broken, ContentMode.BINARY).body == b"{"
    with pytest.raises(BadFileError, match=r"e\.json"):
        outgoing(broken, ContentMode.STRUCTURED)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Answer(202), {"status": 202, "delivered": True}, id="delivered without a word"),
        pytest.param(
            Answer(200, {**REPLY, "content-type": "application/json"}, b"{}"),
            {"status": 200, "reply": "dev.muster.x.created", "delivered": True},
            id="delivered, and answered by an event",
        ),
        pytest.param(
            Answer(409, {"Retry-After": "2"}, b'{"reason": "Conflict", "message": "changed\\n meanwhile"}'),
            {"status": 409, "retry_after": "2", "reason": "Conflict: changed meanwhile"},
            id="come again, and when",
        ),
        pytest.param(
            Answer(400, {}, b"an event needs an id\nmore"),
            {"status": 400, "reason": "an event needs an id"},
            id="refused with a body of another server",
        ),
        pytest.param(
            Answer(500, {}, b"[" * 200_000),
            {"status": 500, "reason": "[" * 4096 + "..."},
            id="refused with JSON that is nested too deeply",
        ),
        pytest.param(Answer(500), {"status": 500}, id="refused without a body"),
        pytest.param(None, {"status": 0, "reason": "connection refused"}, id="connection refused"),
    ],
)
def test_the_recorded_fields_of_an_answer(answer: Answer | None, expected: dict[str, Any]) -> None:
    """Status, Retry-After, the reply's type, the reason."""
    sent = answered(answer)
    assert sent == SentEvent(sent.event, **expected)


def test_a_body_that_is_no_event_is_a_failure_to_a_broker() -> None:
    """Its status alone would be that of an event that was delivered."""
    said = answered(Answer(200, {"content-type": "text/plain"}, b"OK"))
    assert (said.status, said.reply, said.delivered) == (200, "", False)


@pytest.mark.parametrize("body", [b"x" * 10_000, b'{"reason": "A", "message": "' + b"x" * 10_000 + b'"}'])
def test_a_long_answer_is_cut(body: bytes) -> None:
    """Of some megabytes each, 200 took 1.5 GiB of memory and as much of the terminal."""
    assert len(answered(Answer(400, {}, body)).reason) <= 4096 + len("...")


@pytest.mark.parametrize(
    ("seconds", "speed", "want"),
    [
        pytest.param((10, 12, 16), 1.0, [0, 2, 6], id="as recorded, from the first on"),
        pytest.param((10, 12, 16), 2.0, [0, 1, 3], id="twice as fast"),
        pytest.param((10, 12, 16), 0.5, [0, 4, 12], id="half as fast"),
        pytest.param((10, 12, 16), 0.0, [0, 0, 0], id="as fast as it goes"),
        pytest.param(
            (16, 10, 12), 1.0, [0, 2, 6], id="in another order the times stay: the first is for the first"
        ),
        pytest.param((10, 12, 12), 1.0, [0, 2, 2], id="a duplicate goes out with its original"),
        pytest.param((), 1.0, [], id="nothing"),
    ],
)
def test_when_events_go_out(seconds: tuple[float, ...], speed: float, want: list[float]) -> None:
    """Seconds after the beginning, by the attribute `time`."""
    assert send_times(ready(*seconds), speed) == want


def test_an_event_without_a_time_is_due_at_once() -> None:
    """The attribute is optional."""
    assert send_times([*ready(10, 12), recorded()], 1.0) == [0, 0, 2]


def test_they_are_waited_for() -> None:
    """Not a moment earlier than recorded."""
    function = _TimedFunction(Answer(202))
    list(resend(ready(0, 0.2), ContentMode.BINARY, function, Pace(1.0), threading.Event()))
    assert function.times[1] >= 0.2


def test_it_keeps_within_the_time_given() -> None:
    """It does not wait for an event that is due later, nor longer than that for an answer."""
    function = _TimedFunction(Answer(202))
    list(resend(ready(0, 60), ContentMode.BINARY, function, Pace(1.0, seconds=5.0), _StopsAfter(5.0)))
    assert len(function.came) == 1
    assert function.patience[0] is not None
    assert function.patience[0] <= 5.0


class _StopsAfter(threading.Event):
    """No client sets it; it does not wait, but has to be asked to wait no longer than this."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._most = seconds

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert timeout <= self._most
        return timeout > 1.0


def test_it_stops_on_request() -> None:
    """Ctrl-C, between two events."""
    stop = threading.Event()

    def function(_headers: Mapping[str, str], _body: bytes, _timeout: float | None) -> Answer:
        stop.set()
        return Answer(202)

    assert len(list(resend(ready(0, 0, 0), ContentMode.BINARY, function, Pace(), stop))) == 1


def test_an_answer_is_about_its_event() -> None:
    """As the broker sees it."""
    assert isinstance(answered(Answer(202)).event, CloudEvent)


def test_a_wait_of_years_is_no_error() -> None:
    """At a low speed an event is due later than any thread can wait."""
    stop = _StopsAfter(threading.TIMEOUT_MAX)
    assert (
        len(list(resend(ready(0, 60), ContentMode.BINARY, _TimedFunction(Answer(202)), Pace(1e-300), stop)))
        == 1
    )

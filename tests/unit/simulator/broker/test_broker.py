"""The broker delivers like Knative's: subscribers, retries, replies and dead letters."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from muster.simulator.broker import (
    Answer,
    AnswerTooLongError,
    Broker,
    CloudEvent,
    NoAnswerError,
    RefusedError,
    Report,
    Target,
    Wiring,
)
from muster.simulator.broker import broker as broker_module

SWEEP = CloudEvent({"specversion": "1.0", "id": "1", "source": "/test", "type": "dev.muster.sweep"})
REPLY = {"ce-specversion": "1.0", "ce-id": "2", "ce-source": "/test", "ce-type": "dev.muster.made"}
SECONDS = 5


@dataclass
class _Subscriber:
    """A subscriber that answers as configured, and keeps what it got."""

    answer: Answer | Exception = field(default_factory=lambda: Answer(202))
    events: list[CloudEvent] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        del timeout
        self.headers.append(headers)
        self.events.append(CloudEvent.from_http(headers, body))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def _wiring(*triggers: dict[str, Any], **broker: Any) -> Wiring:
    metadata = {"name": "muster", "namespace": "muster-system"}
    return Wiring.from_manifests([{"kind": "Broker", "metadata": metadata, "spec": broker}, *triggers])


def _trigger(name: str, *event_types: str, **delivery: Any) -> dict[str, Any]:
    wanted = [{"exact": {"type": event_type}} for event_type in event_types or ("dev.muster.sweep",)]
    spec: dict[str, Any] = {
        "broker": "muster",
        "filters": [{"any": wanted}],
        "subscriber": {"ref": {"name": name}},
    }
    if delivery:
        spec["delivery"] = delivery
    metadata = {"name": name, "namespace": "muster-system"}
    return {"kind": "Trigger", "metadata": metadata, "spec": spec}


DEAD_LETTER = {"deadLetterSink": {"ref": {"name": "dead-letter"}}}


def _pumped(
    wiring: Wiring, functions: dict[str, Target], event: CloudEvent = SWEEP
) -> tuple[Broker, list[Report]]:
    reports: list[Report] = []
    broker = Broker(
        wiring, functions, workers=0, observe=reports.append, clock=lambda: "2026-11-21T08:00:00Z"
    )
    broker.publish(event)
    broker.pump()
    return broker, reports


@pytest.mark.parametrize(
    ("answer", "calls"),
    [
        *[pytest.param(Answer(status), 1, id=f"{status} is the end") for status in (202, 204, 200)],
        *[
            pytest.param(Answer(status), 1, id=f"{status} is the end, as a failure")
            for status in (301, 400, 401, 410, 413, 422, 425)
        ],
        *[
            pytest.param(Answer(status), 4, id=f"{status} comes three times again")
            for status in (404, 408, 409, 429, 500, 501, 503)
        ],
        pytest.param(Answer(200, body=b"OK"), 4, id="200 with a text is a failure and comes again"),
        pytest.param(
            Answer(200, {"Content-Type": "application/json"}, b"{}"),
            4,
            id="200 with JSON that is no event is a failure and comes again",
        ),
        pytest.param(Answer(200, REPLY), 1, id="200 with an event is the end"),
        pytest.param(
            Answer(200, {"ce-specversion": "1.0"}), 1, id="200 with half an event is the end, as a failure"
        ),
        pytest.param(Answer(200, {**REPLY, "ce-time": "now"}), 4, id="200 with a broken time comes again"),
        pytest.param(NoAnswerError("refused"), 4, id="no answer comes three times again"),
    ],
)
def test_deliveries_by_answer(answer: Answer | Exception, calls: int) -> None:
    """With `retry: 3`, the table measured on Knative's own filter and dispatcher."""
    function = _Subscriber(answer)
    _, reports = _pumped(_wiring(_trigger("step", retry=3)), {"step": function})
    assert len(function.events) == calls
    assert [report.attempts for report in reports if report.trigger == "step"] == [calls]


def test_only_triggers_that_let_it_through_get_an_event() -> None:
    """Each trigger by its own filter, and each gets the same event."""
    wanted, other = _Subscriber(), _Subscriber()
    _pumped(
        _wiring(_trigger("wanted"), _trigger("other", "dev.muster.made")), {"wanted": wanted, "other": other}
    )
    assert [event["id"] for event in wanted.events] == ["1"]
    assert other.events == []


def test_the_headers_that_a_function_gets_beside_the_event() -> None:
    """The arrival time, `Prefer: reply`, the trigger's namespace; never the broker's own lifetime count."""
    function = _Subscriber()
    _pumped(_wiring(_trigger("step")), {"step": function}, SWEEP.with_attributes(knativebrokerttl="7"))
    assert function.events[0]["knativearrivaltime"] == "2026-11-21T08:00:00Z"
    assert function.events[0]["knativebrokerttl"] == ""
    assert function.headers[0]["Prefer"] == "reply"
    assert function.headers[0]["Kn-Namespace"] == "muster-system"


def test_a_reply_is_an_event_like_any_other() -> None:
    """What one function answers, the next one hears; the report names it."""
    first, second = _Subscriber(Answer(200, REPLY)), _Subscriber()
    wiring = _wiring(_trigger("first"), _trigger("second", "dev.muster.made"))
    _, reports = _pumped(wiring, {"first": first, "second": second})
    assert [event["id"] for event in second.events] == ["2"]
    assert reports[0].reply is not None
    assert reports[0].reply["type"] == "dev.muster.made"


def test_replies_to_replies_end() -> None:
    """A function that hears its own reply is called 255 times; its last event is a dead letter."""
    again = _Subscriber(Answer(200, {**REPLY, "ce-type": "dev.muster.sweep"}))
    dead = _Subscriber()
    _pumped(_wiring(_trigger("again", **DEAD_LETTER)), {"again": again, "dead-letter": dead})
    assert len(again.events) == 255
    assert [event["knativeerrorcode"] for event in dead.events] == ["400"]


@pytest.mark.parametrize(
    ("answer", "code", "data"),
    [
        pytest.param(Answer(422, body=b"no gang"), "422", b"no gang", id="a refusal"),
        pytest.param(Answer(503, body=b"x" * 768), "503", b"x" * 768, id="the longest answer"),
        pytest.param(
            NoAnswerError("refused"), "500", b"dispatch error: refused", id="no answer counts as 500"
        ),
    ],
)
def test_a_dead_letter_says_who_failed_and_how(answer: Answer | Exception, code: str, data: bytes) -> None:
    """The original event with three extensions, after the retries; the report has the sink's answer."""
    dead = _Subscriber()
    functions: dict[str, Target] = {"step": _Subscriber(answer), "dead-letter": dead}
    _, reports = _pumped(_wiring(_trigger("step", retry=1, **DEAD_LETTER)), functions)
    (letter,) = dead.events
    assert letter["id"] == "1"
    assert letter["knativeerrordest"] == "http://step.muster-system"
    assert letter["knativeerrorcode"] == code
    assert base64.b64decode(letter["knativeerrordata"]) == data
    assert reports[0].dead_letter == 202


def test_functions_of_one_service_are_distinguished_by_their_paths() -> None:
    """Each gets its own events, and a dead letter has the address with the path."""
    first, second, dead = _Subscriber(), _Subscriber(Answer(400)), _Subscriber()
    functions: dict[str, Target] = {"muster/first": first, "muster/second": second, "muster/dead": dead}
    sink = {"deadLetterSink": {"ref": {"name": "muster"}, "uri": "/dead"}}
    triggers = [_trigger("first", **sink), _trigger("second", **sink)]
    for trigger in triggers:
        name = trigger["metadata"]["name"]
        trigger["spec"]["subscriber"] = {"ref": {"name": "muster"}, "uri": f"/{name}"}
    _pumped(_wiring(*triggers), functions)
    assert (len(first.events), len(second.events)) == (1, 1)
    (letter,) = dead.events
    assert letter["knativeerrordest"] == "http://muster.muster-system/second"


def test_an_answer_that_would_end_knatives_dispatcher_is_an_error() -> None:
    """Above 768 bytes Knative 0.47.0 panics when it makes the dead letter; without a sink nothing happens."""
    functions: dict[str, Target] = {
        "step": _Subscriber(Answer(503, body=b"x" * 769)),
        "dead-letter": _Subscriber(),
    }
    with pytest.raises(AnswerTooLongError, match="503"):
        _pumped(_wiring(_trigger("step", **DEAD_LETTER)), functions)
    _, reports = _pumped(_wiring(_trigger("step")), functions)
    assert [report.status for report in reports] == [503]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(200, body=b"OK"), id="an answer that is no event"),
        pytest.param(NoAnswerError("slow", timed_out=True), id="a time-out"),
    ],
)
def test_some_dead_letters_say_nothing(answer: Answer | Exception) -> None:
    """The real broker loses the details of its own 502 and of a time-out: a sink must not count on them."""
    dead = _Subscriber()
    _pumped(_wiring(_trigger("step", **DEAD_LETTER)), {"step": _Subscriber(answer), "dead-letter": dead})
    assert dead.events[0]["id"] == "1"
    assert not any(name.startswith("knativeerror") for name in dead.events[0].attributes)


def test_a_dead_letter_sink_is_retried_too_and_then_the_event_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The sink follows the same delivery; its failure is logged and reported."""
    dead = _Subscriber(Answer(503))
    functions: dict[str, Target] = {"step": _Subscriber(Answer(400)), "dead-letter": dead}
    _, reports = _pumped(_wiring(_trigger("step", retry=2, **DEAD_LETTER)), functions)
    assert len(dead.events) == 3
    assert reports[0].dead_letter == 503
    (record,) = (record for record in caplog.records if record.levelname == "ERROR")
    assert "step" in record.getMessage()


def test_a_triggers_delivery_replaces_the_brokers_except_for_the_sink() -> None:
    """A trigger that sets only `retry` has the broker's dead letter sink, but not its other fields."""
    broker = {"retry": 2, "timeout": "PT1S", **DEAD_LETTER}
    wiring = _wiring(_trigger("own", retry=1), _trigger("inherits"), delivery=broker)
    own, inherits = wiring.triggers[1], wiring.triggers[0]
    assert (own.name, own.delivery.retry, own.delivery.dead_letter) == ("own", 1, "dead-letter")
    assert own.delivery.timeout is None
    assert (inherits.delivery.retry, inherits.delivery.dead_letter) == (2, "dead-letter")


def test_a_service_without_an_address_is_an_error_at_the_start() -> None:
    """Not a surprise for the first event, dead letter sinks included."""
    with pytest.raises(LookupError, match="dead-letter"):
        Broker(_wiring(_trigger("step", **DEAD_LETTER)), {"step": _Subscriber()})


def test_pump_delivers_in_the_order_of_arrival() -> None:
    """The same events in the same order give the same deliveries, replies last: what a replay needs."""
    wiring = _wiring(_trigger("b", "dev.muster.sweep", "dev.muster.made"), _trigger("a"))
    functions: dict[str, Target] = {"a": _Subscriber(Answer(200, REPLY)), "b": _Subscriber()}
    for _ in range(2):
        reports: list[Report] = []
        broker = Broker(wiring, functions, workers=0, observe=reports.append)
        broker.publish(SWEEP)
        broker.publish(SWEEP.with_attributes(id="9"))
        assert broker.pump() == 6
        seen = [(report.trigger, report.event["id"]) for report in reports]
        assert seen == [("a", "1"), ("b", "1"), ("a", "9"), ("b", "9"), ("b", "2"), ("b", "2")]


@dataclass
class _Slow:
    """A subscriber that does not answer before it is let go."""

    called: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        del headers, body, timeout
        self.called.set()
        assert self.released.wait(SECONDS)
        return Answer(202)


def _running(
    wiring: Wiring, functions: dict[str, Target], **options: Any
) -> tuple[Broker, Callable[[], None]]:
    broker = Broker(wiring, functions, **options)
    broker.start()
    return broker, broker.stop


def test_a_slow_function_holds_back_neither_source_nor_others() -> None:
    """Publishing returns at once, the other trigger is served, and idle shows that one is still out."""
    slow, other = _Slow(), threading.Event()

    def quick(*_: object) -> Answer:
        other.set()
        return Answer(202)

    broker, stop = _running(_wiring(_trigger("slow"), _trigger("quick")), {"slow": slow, "quick": quick})
    broker.publish(SWEEP)
    assert other.wait(SECONDS)
    assert slow.called.wait(SECONDS)
    assert not broker.idle()
    assert not broker.drain(0.01)
    slow.released.set()
    assert broker.drain(SECONDS)
    assert broker.idle()
    stop()


def test_a_full_queue_refuses_for_all_triggers_or_none() -> None:
    """503 makes the source try again; no trigger has got the event then, so none gets it twice."""
    full, other = _Subscriber(), _Subscriber()
    wiring = _wiring(_trigger("full", "dev.muster.made", "dev.muster.sweep"), _trigger("other"))
    broker = Broker(wiring, {"full": full, "other": other}, workers=1, capacity=1)
    broker.publish(SWEEP.with_attributes(type="dev.muster.made"))
    with pytest.raises(RefusedError) as refused:
        broker.publish(SWEEP)
    assert refused.value.status == 503
    assert broker.pump() == 1
    broker.publish(SWEEP)
    assert broker.pump() == 2
    assert len(other.events) == 1


def test_more_bytes_than_memory_has_room_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until some are delivered: a cluster may make large events faster than functions take them."""
    monkeypatch.setattr(broker_module, "MOST_BYTES", 25)
    one, other = _Subscriber(), _Subscriber()
    broker = Broker(_wiring(_trigger("one"), _trigger("other")), {"one": one, "other": other}, workers=1)
    event = CloudEvent(SWEEP.attributes, b"x" * 10)
    broker.publish(event)
    with pytest.raises(RefusedError) as refused:
        broker.publish(event)
    assert refused.value.status == 503
    assert broker.pump() == 2
    broker.publish(event)
    assert broker.pump() == 2


def test_a_replay_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without workers nobody else's events wait, and those of a file are in memory already."""
    monkeypatch.setattr(broker_module, "MOST_BYTES", 25)
    broker = Broker(_wiring(_trigger("one")), {"one": _Subscriber()}, workers=0, capacity=1)
    for _ in range(2):
        broker.publish(CloudEvent(SWEEP.attributes, b"x" * 30))
    assert broker.pump() == 2


def test_a_function_of_this_process_that_raises_does_not_stop_the_queue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The error is logged with its traceback, and the next event is delivered."""
    calls: list[str] = []

    def broken(headers: Mapping[str, str], *_: object) -> Answer:
        calls.append(headers["Ce-Id"])
        raise RuntimeError("a bug")

    broker, stop = _running(_wiring(_trigger("broken")), {"broken": broken}, workers=1)
    broker.publish(SWEEP)
    broker.publish(SWEEP.with_attributes(id="9"))
    assert broker.drain(SECONDS)
    stop()
    assert calls == ["1", "9"]
    assert "a bug" in caplog.text


def test_stopping_ends_waiting_deliveries() -> None:
    """A long backoff does not keep the process alive; waiting events are dropped, not dead letters."""
    called = threading.Event()
    dead = _Subscriber()
    delivery = {"retry": 5, "backoffPolicy": "exponential", "backoffDelay": "PT1H", **DEAD_LETTER}
    reports: list[Report] = []

    def unavailable(*_: object) -> Answer:
        called.set()
        return Answer(503)

    broker, stop = _running(
        _wiring(_trigger("step", **delivery)),
        {"step": unavailable, "dead-letter": dead},
        observe=reports.append,
    )
    broker.publish(SWEEP)
    assert called.wait(SECONDS)
    stop()
    assert [report.attempts for report in reports] == [1]
    assert dead.events == []

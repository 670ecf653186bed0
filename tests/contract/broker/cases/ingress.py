"""The broker's answers to senders: what it accepts, and with which status it refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation, header

case = BrokerCases(__name__)
CASES = case.all

STRUCTURED = {"Content-Type": "application/cloudevents+json"}
ENVELOPE = {"specversion": "1.0", "id": "1", "source": "/test", "type": "t"}
STEP: dict[str, dict[str, str]] = {"step": {}}


def _refused(broker: BrokerConversation, headers: Iterable[dict[str, str]]) -> None:
    """Post an event for each change and assert that every one is refused with 400."""
    changes = list(headers)
    assert [broker.post(EVENT | change) for change in changes] == [400] * len(changes)


@case(STEP)
def accepted(broker: BrokerConversation) -> None:
    """An event is accepted with 202, in both modes, with a body of known or unknown length."""
    assert broker.post(EVENT) == 202
    assert broker.post(EVENT | {"Ce-Id": "2", "Content-Type": "text/plain"}, b"chunks", chunked=True) == 202
    assert broker.post(STRUCTURED, json.dumps(ENVELOPE | {"id": "3"}).encode()) == 202
    assert {header(heard, "ce-id") for heard in broker.wait("step", 3)} == {"1", "2", "3"}


@case(STEP)
def required_attributes(broker: BrokerConversation) -> None:
    """Id, source, type and specversion are required and not empty."""
    for name in ("Ce-Id", "Ce-Source", "Ce-Type", "Ce-Specversion"):
        assert broker.post({key: value for key, value in EVENT.items() if key != name}) == 400
        assert broker.post(EVENT | {name: ""}) == 400
    assert broker.post(EVENT | {"Ce-Id": "%20"}) == 202
    assert broker.post({}, b"{}") == 400
    assert broker.post({"Content-Type": "application/json"}, b"{}") == 400


@case(STEP)
def versions(broker: BrokerConversation) -> None:
    """Only specversion 1.0 and 0.3 are known."""
    _refused(broker, ({"Ce-Specversion": version} for version in ("2.0", "0.2", "1", "1.1")))


@case(STEP)
def bad_times(broker: BrokerConversation) -> None:
    """A time is RFC 3339."""
    _refused(
        broker,
        (
            {"Ce-Time": time}
            for time in (
                "yesterday",
                "2026-11-22",
                "2026-11-22T08:00:00",
                "2026-11-22 08:00:00Z",
                "2026-13-22T08:00:00Z",
                "2026-11-31T08:00:00Z",
                "20261122T080000Z",
                "1790000000",
            )
        ),
    )
    assert broker.post(EVENT | {"Ce-Time": "2026-11-22t08:00:00z"}) in (202, 400)
    assert broker.post(EVENT | {"Ce-Time": "2026-11-22T08:00:00,5Z"}) in (202, 400)
    assert broker.post(EVENT | {"Ce-Time": "2026-11-22T08:00:60Z"}) in (202, 400)
    assert broker.post(EVENT | {"Ce-Time": ""}) in (202, 400)


@case(STEP)
def bad_sources(broker: BrokerConversation) -> None:
    """A source is a URI reference."""
    _refused(
        broker,
        ({"Ce-Source": source} for source in ("http://[::1", ":", "%zz", "1http://x:y", "http://a:b/")),
    )


@case(STEP)
def other_attributes(broker: BrokerConversation) -> None:
    """Names of extensions, the data schema and the content type are validated."""
    _refused(
        broker,
        (
            {"Ce-My-Ext": "x"},
            {"Ce-My_Ext": "x"},
            {"Ce-Dataschema": "%zz"},
            {"Ce-Dataschema": "relative"},
            {"Content-Type": "no media type"},
            {"Content-Type": "a/b/c"},
        ),
    )
    assert broker.post(EVENT | {"Ce-Subject": ""}) in (202, 400)
    assert broker.post(EVENT | {"Ce-Dataschema": ""}) in (202, 400)
    assert broker.post(EVENT | {"Content-Type": ""}) in (202, 400)


@case(STEP)
def broken_structures(broker: BrokerConversation) -> None:
    """A structured event is one JSON object with the same rules; batches are refused."""
    for body in (
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        *(
            json.dumps({key: value for key, value in ENVELOPE.items() if key != name}).encode()
            for name in ENVELOPE
        ),
        *(
            json.dumps(ENVELOPE | changed).encode()
            for changed in (
                {"id": ""},
                {"id": 1},
                {"specversion": "2.0"},
                {"time": "yesterday"},
                {"source": "http://[::1"},
                {"my-ext": "x"},
                {"myext": {"a": 1}},
                {"myext": [1]},
                {"myext": 3000000000},
                {"data_base64": "?"},
                {"datacontenttype": "text/plain", "data": 1},
                {"datacontenttype": "application/x+json", "data": {}},
                {"dataschema": "relative"},
            )
        ),
    ):
        assert broker.post(STRUCTURED, body) == 400, body
    assert broker.post({"Content-Type": "application/cloudevents-batch+json"}, b"[]") == 400
    assert (
        broker.post({"Content-Type": "application/cloudevents-batch+json"}, json.dumps([ENVELOPE]).encode())
        == 400
    )


@case(STEP)
def nulls(broker: BrokerConversation) -> None:
    """Members of a structured event that are null, twice there, or after the end."""
    statuses = [
        broker.post(STRUCTURED, body)
        for body in (
            b'{"specversion":"1.0","id":"null-extension","source":"/test","type":"t","x":null}',
            b'{"specversion":"1.0","id":"null-subject","source":"/test","type":"t","subject":null}',
            b'{"specversion":"1.0","id":"null-time","source":"/test","type":"t","time":null}',
            b'{"specversion":"1.0","id":"empty-subject","source":"/test","type":"t","subject":""}',
            b'{"specversion":"1.0","id":"data-twice","source":"/test","type":"t","data":1,"data":2}',
            b'{"specversion":"1.0","id":"both-data","source":"/test","type":"t","data":1,"data_base64":"MQ=="}',
            b'{"specversion":"1.0","id":"trailing","source":"/test","type":"t"} x',
        )
    ]
    broker.wait("step", statuses.count(202))


@case(STEP)
def hops(broker: BrokerConversation) -> None:
    """An event whose number of hops is used up is refused; a number that is none is replaced."""
    _refused(broker, ({"Ce-Knativebrokerttl": ttl} for ttl in ("1", "0", "-1")))
    assert broker.post(EVENT | {"Ce-Knativebrokerttl": "x"}) == 202
    assert broker.post(EVENT | {"Ce-Id": "2", "Ce-Knativebrokerttl": "2"}) == 202
    broker.wait("step", 2)


@case(STEP)
def paths(broker: BrokerConversation) -> None:
    """The path is a namespace and a broker; other brokers are 404, other paths 400."""
    for path, status in (
        ("/<namespace>/<broker>/", 202),
        ("/<namespace>/<broker>-of-others", 404),
        ("/elsewhere/<broker>", 404),
        ("/", 404),
        ("/<namespace>", 400),
        ("/<namespace>/<broker>/more", 400),
        ("//<namespace>/<broker>", 400),
    ):
        assert broker.post(EVENT, path=path) == status, path
    assert broker.post({}, path="/<namespace>/<broker>-of-others") == 400


@case(STEP)
def methods(broker: BrokerConversation) -> None:
    """Events are POSTed; OPTIONS is answered for webhooks."""
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD"):
        assert broker.post(EVENT, method=method) == 405
    assert broker.post({}, method="OPTIONS") == 200
    assert broker.post({}, method="OPTIONS", path="/") == 200

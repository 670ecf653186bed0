"""What a function gets: both modes of CloudEvents, verbatim bodies, headers, attributes."""

from __future__ import annotations

from tests.contract.broker.case import EVENT, BrokerCases, BrokerConversation, header

case = BrokerCases(__name__)
CASES = case.all

STRUCTURED = {"Content-Type": "application/cloudevents+json; charset=utf-8"}
STEP: dict[str, dict[str, str]] = {"step": {}}
BODIES = (
    b"",
    b'{ "a" :\t1.0,\n  "b": [ ] }\n',
    b"\x00\xff{not json",
    "Grüße ✓".encode(),
)
DATA = (
    '{ "a" :  1.0e2,\\n"b" : [ 1 , 2 ] }',
    '"text \\u00fc"',
    "1.50",
    "true",
    "null",
    " [ ] ",
    '{"id": "inner", "specversion": "2.0"}',
)


@case(STEP)
def binary(broker: BrokerConversation) -> None:
    """In binary mode the body is passed byte by byte."""
    for number, body in enumerate(BODIES):
        broker.post(EVENT | {"Ce-Id": str(number), "Content-Type": "application/json"}, body)
    heard = broker.wait("step", len(BODIES))
    assert {header(request, "ce-id"): request.body for request in heard} == {
        str(number): body for number, body in enumerate(BODIES)
    }


@case(STEP)
def structured(broker: BrokerConversation) -> None:
    """An event in structured mode is delivered in binary mode, its JSON data as it was written."""
    for number, data in enumerate(DATA):
        text = data.replace("\\n", "\n")
        envelope = f'{{"specversion":"1.0","id":"{number}","source":"/test","type":"t","data":{text}}}'
        broker.post(STRUCTURED, envelope.encode())
    broker.wait("step", len(DATA))


@case(STEP)
def structured_data(broker: BrokerConversation) -> None:
    """Data that is no JSON is a string or base64; the order of members does not matter."""
    base = '"specversion":"1.0","source":"/test","type":"t"'
    plain, image = '"datacontenttype":"text/plain"', '"datacontenttype":"image/png"'
    for members in (
        f'{base},{plain},"id":"text","data":"a\\nb"',
        f'"data":"a\\nb",{plain},"id":"before",{base}',
        f'{base},{image},"id":"base64","data_base64":"iVBORw=="',
        f'{base},"id":"json-base64","data_base64":"eyJhIjogMX0="',
        f'{base},"id":"none"',
        f'{base},"datacontenttype":"application/x+json","id":"vendor","data":"{{ }}"',
        f'{base},"datacontenttype":"application/json","id":"json-text","data":"a"',
        f'"data": {{ "n": 1 }},"id":"data-first",{base}',
    ):
        assert broker.post(STRUCTURED, f"{{{members}}}".encode()) == 202
    broker.wait("step", 8)


@case(STEP)
def structured_extensions(broker: BrokerConversation) -> None:
    """Extensions that are no strings become text."""
    broker.post(
        STRUCTURED,
        b'{"specversion":"1.0","id":"1","source":"/test","type":"t","n":3,"f":2.7,"minus":-1,'
        b'"yes":true,"no":false,"empty":"","text":"x","UPPER":"x"}',
    )
    (heard,) = broker.wait("step")
    assert [header(heard, f"ce-{name}") for name in ("n", "yes", "no", "text")] == ["3", "true", "false", "x"]


@case(STEP)
def modes(broker: BrokerConversation) -> None:
    """The content type decides the mode; attributes in headers of a structured event are ignored."""
    body = b'{"specversion":"1.0","id":"inside","source":"/test","type":"t","data":{}}'
    broker.post(EVENT | STRUCTURED | {"Ce-Id": "outside", "Ce-Kind": "Job"}, body)
    broker.post({"Content-Type": "Application/CloudEvents+JSON"}, body.replace(b"inside", b"upper"))
    broker.post({"Content-Type": "application/json"}, body.replace(b"inside", b"plain"))
    broker.wait("step")
    assert "inside" in {header(request, "ce-id") for request in broker.settled("step")}


@case(STEP)
def times(broker: BrokerConversation) -> None:
    """A time is passed on in UTC, without zeros at its end."""
    for number, time in enumerate(
        (
            "2026-11-22T08:00:00Z",
            "2026-11-22T09:00:00+01:00",
            "2026-11-22T08:00:00.123456789Z",
            "2026-11-22T08:00:00.500000Z",
            "2026-11-22T08:00:00.000Z",
            "2026-11-22T00:30:00-08:30",
        )
    ):
        assert broker.post(EVENT | {"Ce-Id": str(number), "Ce-Time": time}) == 202
    heard = {header(request, "ce-id"): header(request, "ce-time") for request in broker.wait("step", 6)}
    assert heard["1"] == "2026-11-22T08:00:00Z"
    assert heard["3"] == "2026-11-22T08:00:00.5Z"


@case(STEP)
def older_version(broker: BrokerConversation) -> None:
    """Events of specversion 0.3 are accepted and stay such events."""
    broker.post(EVENT | {"Ce-Specversion": "0.3", "Ce-Schemaurl": "https://muster.dev/schema"}, b"{}")
    broker.post(
        STRUCTURED,
        b'{"specversion":"0.3","id":"2","source":"/test","type":"t","datacontentencoding":"base64","data":"eyJhIjogMX0="}',
    )
    heard = broker.wait("step", 2)
    assert {header(request, "ce-specversion") for request in heard} == {"0.3"}


@case(STEP)
def attributes_in_headers(broker: BrokerConversation) -> None:
    """Attributes are passed as they are, empty and percent-encoded values included."""
    broker.post(
        EVENT
        | {
            "Ce-Namespace": "",
            "Ce-Name": "Gr%C3%BC%C3%9Fe%20%22x%22",
            "Ce-Subject": "a b",
            "Ce-Dataschema": "https://muster.dev/schema?x=1",
            "Content-Type": "application/json; charset=UTF-8",
            "CE-SHOUTED": "X",
        },
        b"{}",
    )
    (heard,) = broker.wait("step")
    assert header(heard, "ce-namespace") == ""
    assert "ce-namespace" in {name.lower() for name in heard.headers}
    assert header(heard, "ce-subject") == "a b"
    assert header(heard, "ce-shouted") == "X"


@case(STEP)
def sources(broker: BrokerConversation) -> None:
    """A source is any URI reference."""
    for number, source in enumerate(
        ("https://10.96.0.1:443", "urn:uuid:1", "muster", "/a b", "//host/path?q#f", "%41")
    ):
        assert broker.post(EVENT | {"Ce-Id": str(number), "Ce-Source": source}) == 202
    broker.wait("step", 6)


@case(STEP)
def passed_headers(broker: BrokerConversation) -> None:
    """Of other headers only those for tracing and Knative's own are passed."""
    broker.post(
        EVENT
        | {
            "X-Request-Id": "1",
            "X-B3-TraceId": "0af7651916cd43dd8448eb211c80319c",
            "X-B3-Sampled": "1",
            "Knative-Anything": "1",
            "Retry-After": "5",
            "Kn-Namespace": "of-the-sender",
            "Prefer": "nothing",
            "X-Custom": "1",
            "Authorization": "Bearer x",
            "Cookie": "a=b",
            "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "Tracestate": "muster=1",
            "Baggage": "a=b",
        }
    )
    (heard,) = broker.wait("step")
    assert header(heard, "x-request-id") == "1"
    assert header(heard, "prefer") == "reply"
    assert header(heard, "kn-namespace") not in {"", "of-the-sender"}
    assert not header(heard, "x-custom") + header(heard, "authorization") + header(heard, "cookie")


@case(STEP)
def attributes_of_the_broker(broker: BrokerConversation) -> None:
    """The broker sets `knativearrivaltime` and hides `knativebrokerttl`."""
    broker.post(EVENT | {"Ce-Knativearrivaltime": "2020-01-01T00:00:00Z", "Ce-Knativebrokerttl": "7"})
    (heard,) = broker.wait("step")
    assert header(heard, "ce-knativearrivaltime") > "2026"
    assert header(heard, "ce-knativebrokerttl") == ""

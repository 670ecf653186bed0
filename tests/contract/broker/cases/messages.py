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
def modes(broker: BrokerConversation) -> None:
    """The content type decides the mode; attributes in headers of a structured event are ignored."""
    body = b'{"specversion":"1.0","id":"inside","source":"/test","type":"t","data":{}}'
    broker.post(EVENT | STRUCTURED | {"Ce-Id": "outside", "Ce-Kind": "Job"}, body)
    broker.post({"Content-Type": "Application/CloudEvents+JSON"}, body.replace(b"inside", b"upper"))
    broker.post({"Content-Type": "application/json"}, body.replace(b"inside", b"plain"))
    broker.wait("step")
    assert "inside" in {header(request, "ce-id") for request in broker.settled("step")}


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

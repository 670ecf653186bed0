"""The contract cases of a broker: filters, replies, messages, the ingress, and those of deliveries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.contract.broker.case import DEAD_LETTERS, EVENT, BrokerCase, Headers
from tests.contract.broker.delivery_cases import ONE, STEP, TRACE, dead_letters, deliveries, delivery, posts
from tests.contract.broker.recipients import Reaction

REPLY = EVENT | {"Ce-Id": "2", "Ce-Type": "dev.muster.made"}
JOB, POD = {"exact": {"kind": "Job"}}, {"exact": {"kind": "Pod"}}
ADD, UPDATE = {"suffix": {"type": ".add"}}, {"suffix": {"type": ".update"}}
SWEEPS = [{"exact": {"type": "dev.muster.sweep"}}]
MADE = {"filters": [{"exact": {"type": "dev.muster.made"}}]}
FIRST = {"filters": SWEEPS, "delivery": {"retry": 1, **DEAD_LETTERS}}
ADDED = EVENT | {
    "Ce-Type": "dev.knative.apiserver.resource.add",
    "Ce-Kind": "Job",
    "Ce-Namespace": "",
    "Ce-Subject": "/apis/batch/v1/jobs/qwen",
    "Content-Type": "application/json; charset=utf-8",
}


def _by(**filters: Any) -> dict[str, dict[str, Any]]:
    """Return a trigger for each filter, and one without a filter."""
    named = {name.replace("_", "-"): {"filters": entries} for name, entries in filters.items()}
    return {"everything": {}, **named}


def _without(event: Headers, name: str) -> dict[str, str]:
    return {key: value for key, value in event.items() if key != name}


def _filters() -> Iterator[BrokerCase]:
    post = [(ADDED, b"{}")]
    yield BrokerCase(
        "filters",
        "comparisons",
        "Exact, prefix and suffix compare values with their case, and all attributes of one count.",
        _by(
            exact=[JOB],
            exact_other=[POD],
            exact_lower=[{"exact": {"kind": "job"}}],
            exact_two=[{"exact": {"kind": "Job", "id": "1"}}],
            exact_one_of_two=[{"exact": {"kind": "Job", "id": "2"}}],
            prefix=[{"prefix": {"type": "dev.knative."}}],
            prefix_middle=[{"prefix": {"type": "knative."}}],
            suffix=[ADD],
            suffix_other=[UPDATE],
            suffix_middle=[{"suffix": {"type": ".resource"}}],
        ),
        post,
    )
    yield BrokerCase(
        "filters",
        "combinations",
        "`all`, `any` and `not` nest; filters beside one another are all needed.",
        _by(
            no=[{"not": POD}],
            no_match=[{"not": JOB}],
            not_not=[{"not": {"not": JOB}}],
            all_of=[{"all": [ADD, JOB]}],
            all_but_one=[{"all": [ADD, POD]}],
            any_of=[{"any": [POD, JOB]}],
            any_none=[{"any": [POD, UPDATE]}],
            any_single=[{"any": [POD]}],
            nested=[{"all": [ADD, {"any": [POD, {"not": POD}]}]}],
            beside=[ADD, JOB],
            beside_one_fails=[ADD, POD],
        ),
        post,
    )


def _replies() -> Iterator[BrokerCase]:
    def case(key: str, rule: str, triggers: Mapping[str, Any], **more: Any) -> BrokerCase:
        return BrokerCase("replies", key, rule, triggers, **{"posts": ONE, **more})

    two = {"first": FIRST, "second": MADE}
    yield case(
        "a_reply",
        "A reply is delivered like any event.",
        two,
        reactions={"first": [Reaction(200, REPLY | {"Content-Type": "application/json"}, b'{"n":  1}')]},
    )
    yield case(
        "hop_limit",
        "A chain of replies ends when `knativebrokerttl` is used up; the dead letter names the broker.",
        {"again": delivery(**DEAD_LETTERS)},
        posts=posts({"Ce-Knativebrokerttl": "3"}),
        reactions={"again": [Reaction(200, EVENT)]},
    )


def _messages() -> Iterator[BrokerCase]:
    def case(key: str, rule: str, *events: tuple[Headers, bytes]) -> BrokerCase:
        return BrokerCase("messages", key, rule, STEP, events)

    bodies = (b"", b'{ "a" :\t1.0,\n  "b": [ ] }\n', b"\x00\xff{not json", "Grüße ✓".encode())
    yield case(
        "binary",
        "In binary mode the body is passed byte by byte.",
        *(
            (EVENT | {"Ce-Id": str(number), "Content-Type": "application/json"}, body)
            for number, body in enumerate(bodies)
        ),
    )
    headers = {
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
        "Baggage": "a=b",
    }
    yield case(
        "passed_headers",
        "Of other headers only those for tracing and Knative's own are passed.",
        (EVENT | TRACE | headers, b""),
    )


def _ingress() -> Iterator[BrokerCase]:
    incomplete = [
        post
        for name in ("Ce-Id", "Ce-Source", "Ce-Type", "Ce-Specversion")
        for post in ((_without(EVENT, name), b""), (EVENT | {name: ""}, b""))
    ]
    yield BrokerCase(
        "ingress",
        "required_attributes",
        "Id, source, type and specversion are required and not empty.",
        STEP,
        [*incomplete, *posts({"Ce-Id": "%20"}), ({}, b"{}"), ({"Content-Type": "application/json"}, b"{}")],
    )


CASES = [*_filters(), *deliveries(), *dead_letters(), *_replies(), *_messages(), *_ingress()]

"""A dead letter is stored in a ConfigMap, and the event is read from it unchanged."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from muster.events.cloudevent import STRUCTURED, UnreadableEvent
from muster.events.dead_letters import DeadLetter, cut, from_config_map, of_request, to_config_map
from tests.support import cpu

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "421c",
    "source": "https://10.96.0.1:443",
    "type": "dev.knative.apiserver.resource.add",
    "subject": "/apis/batch/v1/namespaces/team-a/jobs/llama",
    "kind": "Job",
    "namespace": "team-a",
    "name": "llama",
    "datacontenttype": "application/json",
    "data": {"kind": "Job", "metadata": {"name": "llama"}},
}
FAILURE = {
    "knativeerrordest": "http://create-workload.muster-system.svc.cluster.local",
    "knativeerrorcode": "500",
    "knativeerrordata": base64.b64encode(b'{"reason": "Invalid"}').decode(),
    "knativearrivaltime": "2026-11-21T08:00:00Z",
}


SIZE = 64 * 1024


def binary(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """The event in binary mode, as a broker sends it."""
    attributes = {name: value for name, value in event.items() if name not in {"data", "datacontenttype"}}
    headers = {f"Ce-{name.capitalize()}": value for name, value in attributes.items()}
    return headers | {"Content-Type": "application/json"}, json.dumps(event["data"]).encode()


def structured(event: dict[str, Any]) -> tuple[dict[str, str], bytes]:
    """The event in structured mode."""
    return {"content-type": "application/cloudevents+json"}, json.dumps(event).encode()


def parsed(letter: DeadLetter) -> DeadLetter:
    """The letter with its data parsed."""
    data = letter.event.get("data")
    return replace(letter, event={**letter.event, "data": json.loads(data)}) if data else letter


@pytest.mark.parametrize("mode", [binary, structured])
def test_attributes_of_the_broker_are_separated_from_the_event(mode: Any) -> None:
    """Who failed and how stands beside the event, which is as it was before."""
    letter = of_request(*mode(EVENT | FAILURE))
    assert parsed(letter) == DeadLetter(EVENT, "create-workload", "500", '{"reason": "Invalid"}')
    assert letter.about == "Job team-a/llama"


@pytest.mark.parametrize("mode", [binary, structured])
def test_an_event_without_failure_attributes(mode: Any) -> None:
    """Knative adds no attributes after a time-out."""
    assert parsed(of_request(*mode(EVENT))) == DeadLetter(EVENT)


def test_config_map_and_back() -> None:
    """Nothing of a letter is lost in its ConfigMap."""
    letter = of_request(*binary(EVENT | FAILURE))
    stored = to_config_map(letter, "muster-system")
    assert from_config_map(stored) == parsed(letter)
    assert stored["metadata"]["labels"]["muster.dev/dead-letter"] == "true"
    assert (stored["data"]["about"], stored["data"]["code"]) == ("Job team-a/llama", "500")
    assert all(isinstance(value, str) for value in stored["data"].values())


def test_data_that_is_no_json_is_kept_as_bytes() -> None:
    """A team's own events may be anything."""
    headers, _ = binary(EVENT)
    letter = of_request(headers | {"Content-Type": "image/png"}, b"\x89PNG")
    assert (letter.event["data_base64"], letter.event["datacontenttype"]) == ("iVBORw==", "image/png")
    assert from_config_map(to_config_map(letter, "n")) == parsed(letter)


def test_large_event_keeps_its_attributes_only() -> None:
    """A ConfigMap holds a mebibyte, and a hundred of them are listed at once."""
    received = of_request(*binary(EVENT | FAILURE | {"data": {"words": "x" * SIZE}}))
    assert received.whole
    letter = cut(received, SIZE)
    assert not letter.whole
    assert "data" not in letter.event
    assert letter.about == "Job team-a/llama"
    assert from_config_map(to_config_map(letter, "n")) == parsed(letter)


def size(letter: DeadLetter) -> int:
    """The bytes of a letter's ConfigMap as it is sent."""
    return len(json.dumps(to_config_map(letter, "muster-system")))


@pytest.mark.parametrize("character", ["x", '"', "\u00e9", "\U0001f600"])
@pytest.mark.parametrize("length", [100, 2000, 20_000])
def test_no_letter_is_larger_than_the_limit(character: str, length: int) -> None:
    """Whatever is long: data, the subject, extensions, or the answer of the function that failed."""
    extensions = {f"team{number}": character * length for number in range(30)}
    answer = base64.b64encode((character * 768).encode()).decode()
    names = dict.fromkeys(("id", "source", "type", "subject", "name", "musterredrive"), character * length)
    letter = cut(
        of_request(*structured({**EVENT, **FAILURE, **extensions, **names, "knativeerrordata": answer})), SIZE
    )
    assert size(letter) <= SIZE
    assert from_config_map(to_config_map(letter, "n")) == parsed(letter)
    assert letter.whole == (extensions.items() <= letter.event.items() and "data" in letter.event)


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("500", "500"),
        ("599", "599"),
        ("099", ""),
        ("600", ""),
        ("5000", ""),
        ("\u0665\u0660\u0663", ""),
        ("", ""),
    ],
)
def test_code_is_the_status_of_an_answer(code: str, kept: str) -> None:
    """Anything else has one bucket in metrics, such as the Arabic digits of 503."""
    assert of_request(*structured(EVENT | FAILURE | {"knativeerrorcode": code})).code == kept


@pytest.mark.parametrize(
    ("redrives", "following"),
    [
        ("7", "8"),
        ("999999", "999999"),
        ("9" * 5000, "1"),
        ("\u0663", "1"),
        ("-1", "1"),
        (True, "1"),
        ("", "1"),
    ],
)
def test_redrives_are_counted_in_six_digits(redrives: Any, following: str) -> None:
    """A sender may write anything there; Python refuses to convert thousands of digits."""
    assert of_request(*structured(EVENT | {"musterredrive": redrives})).again()["musterredrive"] == following


def test_functions_of_one_service_are_distinguished() -> None:
    """By the path: the same event may fail in two of them, and is kept for each."""
    service = "http://muster.muster-system.svc.cluster.local"
    first, second = (
        of_request(*structured(EVENT | FAILURE | {"knativeerrordest": f"{service}/{path}"}))
        for path in ("create-workload", "patch-pods")
    )
    assert (first.function, second.function) == ("muster/create-workload", "muster/patch-pods")
    assert first.name != second.name
    assert of_request(*structured(EVENT | FAILURE | {"knativeerrordest": f"{service}/"})).function == "muster"
    long = of_request(*structured(EVENT | FAILURE | {"knativeerrordest": f"{service}/{'x' * 5000}"}))
    assert len(long.function) < 80


def test_destination_that_is_no_url() -> None:
    """The function that failed is unknown then."""
    assert of_request(*structured(EVENT | FAILURE | {"knativeerrordest": "http://["})).function == ""


def test_answer_cut_in_the_middle_of_its_base64_is_read_as_far_as_it_goes() -> None:
    """A broker keeps 1024 characters of it."""
    cut = base64.b64encode(b"a long answer of the function").decode()[:30]
    assert of_request(*binary(EVENT | FAILURE | {"knativeerrordata": cut})).answer == "a long answer of the "
    assert of_request(*binary(EVENT | FAILURE | {"knativeerrordata": "???"})).answer == ""


def test_each_failure_of_an_event_has_one_name() -> None:
    """A broker that delivers a letter twice makes one of it; an event that fails once more makes another."""
    first = of_request(*binary(EVENT | FAILURE))
    assert first.name == of_request(*structured(EVENT | FAILURE)).name == "dead-letter-b03c7a2269fd"
    second = of_request(*structured({**first.again(), **FAILURE}))
    assert (second.event["musterredrive"], second.again()["musterredrive"]) == ("1", "2")
    other = of_request(*binary(EVENT | FAILURE | {"knativeerrordest": "http://patch-pods.muster-system"}))
    assert len({first.name, second.name, other.name}) == 3


def test_no_event_is_refused() -> None:
    """The broker would never send one; other senders may."""
    with pytest.raises(UnreadableEvent):
        of_request({}, b"{}")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"id": "1"}'])
def test_a_config_map_that_a_user_changed_is_not_sent(text: str) -> None:
    """What holds no event any more is named, not sent."""
    with pytest.raises(ValueError, match="dead-letter-1") as refused:
        from_config_map({"metadata": {"name": "dead-letter-1"}, "data": {"event.json": text}})
    assert "event.json" in str(refused.value)


def test_deep_data_are_written_in_one_line() -> None:
    """Indentation would write the depth of each of 50,000 numbers before it: 5 MB, in half a second."""
    data: Any = [0] * 50_000
    for _ in range(95):
        data = {"a": data}
    letter = of_request(*structured(EVENT | {"data": data}))
    config_map = to_config_map(letter, "muster-system")
    text = config_map["data"]["event.json"]
    assert len(text) < 200_000
    assert len(text.splitlines()) == len(letter.event) + 2
    assert from_config_map(config_map) == parsed(letter)


@pytest.mark.parametrize("number", ["7e-311", "92e-300", "1", "1.5"])
@pytest.mark.parametrize("mode", [binary, structured])
def test_numbers_are_kept_as_they_are_written(number: str, mode: Any) -> None:
    """To make and write 48 KB of such numbers several times took 15 ms, in which no other event is parsed."""
    text = "[" + ",".join([number] * (47_000 // (len(number) + 1))) + "]"
    headers, body = mode(EVENT | {"data": "numbers"})

    def stored() -> dict[str, Any]:
        letter = cut(of_request(headers, body.replace(b'"numbers"', text.encode())), SIZE)
        return to_config_map(letter, "muster-system")

    assert f'"data": {text}\n' in stored()["data"]["event.json"]
    assert min(cpu.seconds_of(stored) for _ in range(3)) < 0.004


def test_an_integer_of_thousands_of_digits_is_no_attribute() -> None:
    """90 of them took 40 ms."""
    with pytest.raises(UnreadableEvent, match="number"):
        of_request(*structured(EVENT | {"number": 10**4000}))


@pytest.mark.parametrize(
    "body",
    [b'{"a":1' + b',"a":1' * 8_000 + b"}", b"{" + b",".join(b'"a%d":null' % n for n in range(4_000)) + b"}"],
)
def test_thousands_of_members_are_no_event(body: bytes) -> None:
    """They are read one by one."""
    with cpu.at_most(0.004), pytest.raises(UnreadableEvent, match="members"):
        of_request({"content-type": "application/cloudevents+json"}, body)


def test_the_last_of_several_data_counts() -> None:
    """As in any JSON of Python; `null` is none."""
    text = json.dumps(EVENT | {"data": 1})
    for last, kept in (("[ 2 ]", "[ 2 ]"), ("null", None)):
        letter = of_request({"content-type": STRUCTURED}, f'{text[:-1]}, "data":\n {last} }}'.encode())
        assert letter.event.get("data") == kept


def test_a_letter_of_no_media_type_can_be_read() -> None:
    """The data are bytes then."""
    headers, body = binary(EVENT)
    letter = of_request(headers | {"Content-Type": "text"}, body)
    assert from_config_map(to_config_map(letter, "n")) == letter
    assert base64.b64decode(letter.event["data_base64"]) == body


def test_other_blanks_than_those_of_json_are_no_event() -> None:
    """Such as a no-break space after the object."""
    with pytest.raises(UnreadableEvent):
        of_request({"content-type": STRUCTURED}, json.dumps(EVENT).encode() + "\u00a0".encode())

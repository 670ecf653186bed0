"""The comparison of contract answers: status, reason, causes and objects are compared, messages are not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.answers import READ_WORDS, difference, difference_in_words

Entry = dict[str, Any]

REFUSED: Entry = {
    "asked": "POST /api/v1/namespaces/<namespace>/pods",
    "status": 422,
    "body": {
        "kind": "Status",
        "reason": "Invalid",
        "message": 'Pod "pod" is invalid: spec.containers: Required value',
        "details": {
            "kind": "Pod",
            "name": "pod",
            "causes": [{"reason": "FieldValueRequired", "field": "spec.containers", "message": "Required"}],
        },
    },
}
STORED: Entry = {
    "asked": "POST /api/v1/namespaces/<namespace>/events",
    "status": 201,
    "body": {"kind": "Event", "message": "a word"},
}


def _other(entry: Entry, change: Callable[[Entry], object]) -> Entry:
    changed = copy.deepcopy(entry)
    change(changed)
    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(asked="PUT /"),
        lambda entry: entry.update(status=400),
        lambda entry: entry["body"].update(reason="Forbidden"),
        lambda entry: entry["body"]["details"].pop("name"),
        lambda entry: entry["body"]["details"]["causes"][0].update(field="spec"),
        lambda entry: entry["body"]["details"]["causes"][0].update(reason="FieldValueInvalid"),
        lambda entry: entry["body"]["details"].update(causes=[]),
        lambda entry: entry.update(body="refused"),
    ],
    ids=(
        "request",
        "status",
        "reason",
        "name",
        "field of a cause",
        "reason of a cause",
        "no cause",
        "a text",
    ),
)
def test_another_refusal_is_a_difference(change: Callable[[Entry], object]) -> None:
    """Every part of a refusal that a client can act on is compared."""
    assert difference([REFUSED], [_other(REFUSED, change)])


def test_another_message_is_no_difference() -> None:
    """`make record` shows it nevertheless, by `difference_in_words`."""

    def reword(entry: Entry) -> None:
        entry["body"]["message"] = "containers are missing"
        entry["body"]["details"]["causes"][0]["message"] = "missing"

    got = _other(REFUSED, reword)
    assert difference([REFUSED], [got]) == ""
    assert difference_in_words([REFUSED], [got])


@pytest.mark.parametrize("words", READ_WORDS)
def test_messages_that_muster_reads_are_compared(words: str) -> None:
    """Without these words Muster would misread the refusal."""
    wanted = _other(REFUSED, lambda entry: entry["body"].update(message=f"so it is: {words}, sadly"))
    assert difference([wanted], [REFUSED])
    assert difference([wanted], [_other(wanted, lambda entry: entry["body"].update(message=words))]) == ""


def test_every_field_of_an_object_is_compared() -> None:
    """The message of an Event or a condition is compared like any other field."""
    got = _other(STORED, lambda entry: entry["body"].update(message="another word"))
    assert difference([STORED], [got])


def test_a_missing_request_is_a_difference() -> None:
    """Conversations of different lengths differ."""
    assert difference([REFUSED, STORED], [REFUSED])

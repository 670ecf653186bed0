"""The comparison of contract answers: status, reason, causes and objects count, sentences do not."""

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
    "got",
    [
        pytest.param(_other(REFUSED, lambda one: one.update(asked="PUT /")), id="another request"),
        pytest.param(_other(REFUSED, lambda one: one.update(status=400)), id="another status"),
        pytest.param(
            _other(REFUSED, lambda one: one["body"].update(reason="Forbidden")), id="another reason"
        ),
        pytest.param(
            _other(REFUSED, lambda one: one["body"]["details"].pop("name")), id="no object in the details"
        ),
        pytest.param(
            _other(REFUSED, lambda one: one["body"]["details"]["causes"][0].update(field="spec")),
            id="a cause about another field",
        ),
        pytest.param(
            _other(
                REFUSED, lambda one: one["body"]["details"]["causes"][0].update(reason="FieldValueInvalid")
            ),
            id="a cause of another reason",
        ),
        pytest.param(_other(REFUSED, lambda one: one["body"]["details"].update(causes=[])), id="no cause"),
        pytest.param(
            _other(REFUSED, lambda one: one.update(body="refused")), id="a text instead of a Status"
        ),
    ],
)
def test_another_refusal_is_a_difference(got: Entry) -> None:
    """What a client can act on has to be the same."""
    assert difference([REFUSED], [got])


def test_another_sentence_is_no_difference() -> None:
    """It is one for a recording, which shows every word that changed."""

    def reword(one: Entry) -> None:
        one["body"]["message"] = "containers are missing"
        one["body"]["details"]["causes"][0]["message"] = "missing"

    got = _other(REFUSED, reword)
    assert difference([REFUSED], [got]) == ""
    assert difference_in_words([REFUSED], [got])


@pytest.mark.parametrize("words", READ_WORDS)
def test_words_that_muster_reads_are_compared(words: str) -> None:
    """A refusal that no longer has them would be misunderstood."""
    wanted = _other(REFUSED, lambda one: one["body"].update(message=f"so it is: {words}, sadly"))
    assert difference([wanted], [REFUSED])
    assert difference([wanted], [_other(wanted, lambda one: one["body"].update(message=words))]) == ""


def test_every_field_of_an_object_is_compared() -> None:
    """The message of an Event or a condition is a field as any other."""
    got = _other(STORED, lambda one: one["body"].update(message="another word"))
    assert difference([STORED], [got])


def test_a_missing_request_is_a_difference() -> None:
    """A conversation is the same only to its end."""
    assert difference([REFUSED, STORED], [REFUSED])

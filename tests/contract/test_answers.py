"""The comparison of contract answers: status, reason, causes and objects are compared, messages are not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.answers import READ_WORDS, difference, difference_in_words

Entry = dict[str, Any]

CAUSE = {"reason": "FieldValueRequired", "field": "spec.containers", "message": "Required"}
REFUSED: Entry = {
    "asked": "POST /api/v1/namespaces/<namespace>/pods",
    "status": 422,
    "body": {
        "kind": "Status",
        "reason": "Invalid",
        "message": "it is invalid",
        "details": {"causes": [CAUSE]},
    },
}
STORED: Entry = {"asked": "POST <events>", "status": 201, "body": {"kind": "Event", "message": "a word"}}


def _other(entry: Entry, change: Callable[[Entry], object]) -> Entry:
    changed = copy.deepcopy(entry)
    change(changed)
    return changed


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        pytest.param(REFUSED, lambda entry: entry.update(status=400), id="status"),
        pytest.param(REFUSED, lambda entry: entry["body"].update(reason="Conflict"), id="reason"),
        pytest.param(
            REFUSED, lambda entry: entry["body"]["details"]["causes"][0].update(field="spec"), id="field"
        ),
        pytest.param(REFUSED, lambda entry: entry["body"]["details"].update(causes=[]), id="no causes"),
        pytest.param(STORED, lambda entry: entry["body"].update(message="another"), id="of an object"),
    ],
)
def test_what_a_client_can_act_on_is_compared(entry: Entry, change: Callable[[Entry], object]) -> None:
    """Every part of a refusal but its words, and every field of an object."""
    assert difference([entry], [_other(entry, change)])
    assert difference([REFUSED, STORED], [REFUSED]), "conversations of different lengths differ"


def test_another_message_is_no_difference() -> None:
    """`make record` shows it nevertheless, by `difference_in_words`."""
    got = _other(REFUSED, lambda entry: entry["body"].update(message="containers are missing"))
    assert difference([REFUSED], [got]) == ""
    assert difference_in_words([REFUSED], [got])


@pytest.mark.parametrize("words", READ_WORDS)
def test_messages_that_muster_reads_are_compared(words: str) -> None:
    """Without these words Muster would misread the refusal."""
    wanted = _other(REFUSED, lambda entry: entry["body"].update(message=f"so it is: {words}, sadly"))
    assert difference([wanted], [REFUSED])
    assert difference([wanted], [_other(wanted, lambda entry: entry["body"].update(message=words))]) == ""

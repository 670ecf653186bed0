"""The comparison of contract answers: status, reason, causes and objects are compared, messages are not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from tests.contract.answers import READ_WORDS, difference, difference_in_words

Entry = dict[str, Any]

CAUSES = [{"reason": "FieldValueRequired", "field": "spec.containers", "message": "Required"}]
REFUSED: Entry = {
    "asked": "POST /api/v1/namespaces/<namespace>/pods",
    "status": 422,
    "body": {"reason": "Invalid", "message": "it is invalid", "details": {"causes": CAUSES}},
}


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        pytest.param(lambda entry: entry.update(status=400), True, id="status"),
        pytest.param(lambda entry: entry["body"].update(reason="Conflict"), True, id="reason"),
        pytest.param(lambda entry: entry["body"]["details"].update(causes=[]), True, id="causes"),
        pytest.param(lambda entry: entry["body"].update(message="other words"), False, id="message"),
        *(
            pytest.param(lambda entry, words=words: entry["body"].update(message=words), True, id=words)
            for words in READ_WORDS
        ),
    ],
)
def test_what_a_client_can_act_on_is_compared(change: Callable[[Entry], object], *, differs: bool) -> None:
    """Every part of a refusal but its words, except for those that Muster reads."""
    changed = copy.deepcopy(REFUSED)
    change(changed)
    assert bool(difference([REFUSED], [changed])) == differs
    assert difference_in_words([REFUSED], [changed])

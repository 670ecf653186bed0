"""Reasons: one list, each spelled as the API spells them, each used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.policy.reasons import Reason

ROOT = Path(__file__).parents[3]
CODE = "\n".join(
    path.read_text()
    for folder in ("shared", "functions")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "reasons.py"
)


@pytest.mark.parametrize(
    "reason", [pytest.param(reason, id=f"{reason} is given somewhere") for reason in Reason]
)
def test_every_reason_is_used(reason: Reason) -> None:
    """A reason that nothing gives is a promise nobody keeps."""
    used = re.search(rf"\bReason\.{reason.name}\b", CODE) is not None
    assert used, f"{reason} is given nowhere: use it or take it off the list"


@pytest.mark.parametrize(
    "reason", [pytest.param(reason, id=f"{reason} is a reason of the API") for reason in Reason]
)
def test_reasons_are_what_a_condition_takes(reason: Reason) -> None:
    """CamelCase as metav1.Condition wants it, and the name in the code says the same."""
    assert re.fullmatch(r"[A-Z][A-Za-z]+", reason)
    assert reason.name.replace("_", "").lower() == reason.lower()

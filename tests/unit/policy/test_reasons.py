"""Reasons are in one list, spelled as the API requires, and each is used."""

from __future__ import annotations

import re
from pathlib import Path

from muster.policy.reasons import Reason

ROOT = Path(__file__).parents[3]
PACKAGES = ("shared/muster/policy", "shared/muster/cluster", "shared/muster/runtime", "functions")
CODE = "\n".join(path.read_text() for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py")))


def test_every_reason_is_given_somewhere() -> None:
    """One in the list that no code gives would mislead users."""
    assert [reason for reason in Reason if not re.search(rf"\bReason\.{reason.name}\b", CODE)] == []


def test_reasons_are_valid_in_a_condition() -> None:
    """CamelCase as metav1.Condition wants it, and the name in the code says the same."""
    for reason in Reason:
        assert re.fullmatch(r"[A-Z][A-Za-z]+", reason)
        assert reason.name.replace("_", "").lower() == reason.lower()

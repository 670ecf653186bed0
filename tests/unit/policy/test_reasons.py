"""Reasons are in one list, spelled as the API requires, and each is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_type_hints

import pytest

from muster.policy.reasons import Reason
from muster.runtime import outcome
from muster.runtime.outcome import Outcome

ROOT = Path(__file__).parents[3]
PACKAGES = ("objects", "policy", "events", "cluster", "runtime")
"""What runs in functions; simulators and the command spell reasons of Kubernetes as well."""
FILES = [
    path
    for folder in (*(f"shared/muster/{name}" for name in PACKAGES), "functions")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path.name != "reasons.py"
]
CODE = "\n".join(path.read_text() for path in FILES)

SPELLED_BY_OTHERS = {
    ("shared/muster/cluster/errors.py", "AlreadyExists"),  # the API server's own word, which is read
    ("shared/muster/events/parse.py", "UnreadableEvent"),  # the class, in __all__
}


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


def test_a_reason_is_spelled_in_the_list_alone() -> None:
    """Whatever stands in logs, metrics, answers and conditions is on it: the documents' table is whole."""
    spelled = {
        (str(path.relative_to(ROOT)), node.value)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in set(map(str, Reason))
    }
    assert spelled == SPELLED_BY_OTHERS
    assert get_type_hints(Outcome, vars(outcome))["reason"] is Reason

"""Reasons are in one list, spelled as the API requires, and each is used."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from muster.policy.reasons import Reason

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

TAKE_REASONS = {"Plan": 0, "NoOp": 0, "GroupingFailure": 0, "Outcome": 1, "Meaning": 1, "Condition": 2}
"""The classes with a reason, and its position among their arguments."""


@pytest.mark.parametrize(
    "reason", [pytest.param(reason, id=f"{reason} is given somewhere") for reason in Reason]
)
def test_every_reason_is_used(reason: Reason) -> None:
    """A reason in the list that no code uses would mislead users."""
    used = re.search(rf"\bReason\.{reason.name}\b", CODE) is not None
    assert used, f"{reason} is given nowhere: use it or take it off the list"


@pytest.mark.parametrize(
    "reason", [pytest.param(reason, id=f"{reason} is a reason of the API") for reason in Reason]
)
def test_reasons_are_valid_in_a_condition(reason: Reason) -> None:
    """CamelCase as metav1.Condition wants it, and the name in the code says the same."""
    assert re.fullmatch(r"[A-Z][A-Za-z]+", reason)
    assert reason.name.replace("_", "").lower() == reason.lower()


@pytest.mark.thorough
def test_a_reason_is_spelled_in_the_list_alone() -> None:
    """Whatever stands in logs, metrics, answers and conditions is on it: the documents' table is whole."""
    spelled = {
        (str(path.relative_to(ROOT)), node.value)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in set(map(str, Reason))
    }
    assert spelled == SPELLED_BY_OTHERS


@pytest.mark.thorough
def test_no_step_of_muster_has_a_reason_of_its_own() -> None:
    """The reason of a plan may be any word, for steps of other teams; Muster's are all on the list."""
    literals = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and _name_of(node) in TAKE_REASONS
        for value in _reasons_in(node)
        if isinstance(value, ast.Constant | ast.JoinedStr)
    ]
    assert literals == []


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _reasons_in(call: ast.Call) -> list[ast.expr]:
    """Return the reason among the arguments of a call."""
    position = TAKE_REASONS[_name_of(call)]
    named = [keyword.value for keyword in call.keywords if keyword.arg == "reason"]
    return [*call.args[position : position + 1], *named]

"""The lists of upstream requests in docs/requirements.md: their tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.commands import ROOT

TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
REQUESTS = re.findall(r"^(\d+)\. (.*)$", (ROOT / "docs/requirements.md").read_text(), re.MULTILINE)
"""The number and the text of each."""


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of the functions in a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def faults_of(text: str) -> list[str]:
    """What is wrong with a request: no test and no reason, or a test that is gone; [] if nothing is."""
    tests = TEST.findall(text)
    if not tests and ". " not in text:
        return ["neither a test nor a reason"]
    return [
        f"no test {file}::{name}"
        for file, name in tests
        if not (ROOT / "tests" / file).is_file() or name not in functions_of(ROOT / "tests" / file)
    ]


@pytest.mark.parametrize(("number", "text"), REQUESTS, ids=[number for number, _ in REQUESTS])
def test_a_request_is_shown(number: str, text: str) -> None:
    """By a test that exists, or it says why by none."""
    assert number
    assert faults_of(text) == []


def test_numbers_are_unique_and_in_order() -> None:
    """A number in an issue or commit means one request."""
    numbers = [int(number) for number, _ in REQUESTS]
    assert len(numbers) > 100
    assert all(first < second for first, second in pairwise(numbers))

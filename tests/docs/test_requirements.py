"""The table of upstream requests in docs/requirements.md: its tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.commands import ROOT

TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in (ROOT / "docs/requirements.md").read_text().splitlines()
    if re.match(r"\| \d+ \|", line)
]


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of the functions in a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def faults_of(row: list[str]) -> list[str]:
    """What is wrong with a row: no test and no reason, or a test that is gone; [] if nothing is."""
    _, asked, shown = row
    if not (asked and shown):
        return ["neither a test nor a reason"]
    return [
        f"no test {file}::{name}"
        for file, name in TEST.findall(shown)
        if not (ROOT / "tests" / file).is_file() or name not in functions_of(ROOT / "tests" / file)
    ]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_true(row: list[str]) -> None:
    """Each request has a test that exists, or says why it has none."""
    assert faults_of(row) == []


def test_numbers_are_unique_and_in_order() -> None:
    """A number in an issue or commit means one request."""
    numbers = [int(row[0]) for row in ROWS]
    assert len(numbers) > 100
    assert all(first < second for first, second in pairwise(numbers))


def test_a_wrong_row_is_reported() -> None:
    """Without a test or a reason, and with a test that is gone."""
    assert faults_of(["1", "x", ""])
    assert faults_of(["1", "x", "`docs/test_requirements.py::test_gone`"])

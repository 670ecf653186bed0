"""The table of upstream requests in docs/requirements.md: its links lead to files and tests that exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.commands import ROOT

PAGE = (ROOT / "docs/requirements.md").read_text()
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(?:#[^)]*)?\)")
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \|", line)
]
CELLS = 5
HERE = "../tests/docs/test_requirements.py"


@cache
def functions_of(path: Path) -> frozenset[str]:
    """The names of the test functions in a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef))


def faults_of(row: list[str]) -> list[str]:
    """The faults of a row; [] if it has none."""
    if len(row) != CELLS:
        return [f"{len(row)} cells"]
    _, asked, built, test, reason = row
    faults = [] if asked else ["nothing was asked"]
    if not reason:
        cells = {"file": built, "test": test}
        faults += [f"neither {what} nor a reason" for what, cell in cells.items() if not cell]
    for cell in (built, test, reason):
        for text, target in LINK.findall(cell):
            faults += _faults_of_link(text, target, is_test=cell is test)
    unlinked = [cell for cell in (built, test) if LINK.sub("", cell).strip(", ")]
    return faults + [f"no link: {cell}" for cell in unlinked]


def _faults_of_link(text: str, target: str, *, is_test: bool) -> list[str]:
    if target.startswith("https://"):
        return []
    path = (ROOT / "docs" / target).resolve()
    if not path.is_file():
        return [f"no file {target}"]
    if not is_test:
        return []
    named, _, function = text.partition("::")
    faults = [] if path.as_posix().endswith(f"/tests/{named}") else [f"{text} links to {target}"]
    return faults if function in functions_of(path) else [*faults, f"no test {text}"]


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_row_is_true(row: list[str]) -> None:
    """Its files and test functions exist; without a test, or without a file, it has a reason."""
    assert faults_of(row) == []


def test_numbers_are_unique_and_in_order() -> None:
    """A number in an issue or commit means one request."""
    numbers = [int(row[0]) for row in ROWS]
    assert [number for number, count in Counter(numbers).items() if count > 1] == []
    assert all(first < second for first, second in pairwise(numbers))


def test_every_table_row_is_checked() -> None:
    """Each table has rows, and no row is without a number."""
    tables = PAGE.split("\n## ")[1:]
    lines = [[line for line in table.splitlines() if line.startswith("|")][2:] for table in tables]
    assert all(lines)
    assert sum(map(len, lines)) == len(ROWS)


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        pytest.param(
            "1 | x | | | ", "neither file nor a reason", id="nothing is built and no reason is given"
        ),
        pytest.param("1 | x | [f](policy.md) | | ", "neither test nor a reason", id="no test and no reason"),
        pytest.param("1 | x | [f](gone.md) | | why", "no file gone.md", id="a file that is gone"),
        pytest.param(
            f"1 | x | [f](policy.md) | [docs/test_requirements.py::test_gone]({HERE}) | ",
            "no test docs/test_requirements.py::test_gone",
            id="a test that is gone",
        ),
        pytest.param(
            f"1 | x | [f](policy.md) | [docs/test_a.py::test_a_row_is_true]({HERE}) | ",
            f"docs/test_a.py::test_a_row_is_true links to {HERE}",
            id="a link to another file than it names",
        ),
        pytest.param("1 | x | policy.md | | why", "no link: policy.md", id="a name without a link"),
        pytest.param("1 | x | [f](policy.md)", "3 cells", id="a row that is cut off"),
    ],
)
def test_a_wrong_row_is_reported(row: str, fault: str) -> None:
    """Each check can fail."""
    assert fault in faults_of([cell.strip() for cell in row.split("|")])

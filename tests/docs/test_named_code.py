"""Functions, classes and constants that the documentation names are in the files that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_NAMES = r"((?:`\w+`(?:,|\s+and)\s+)*`\w+`)"
_FILE = r"(?:\[[^\]]+\]\(([^)#]+\.py)\)|`([\w/]+\.py)`)"
_NAMED = re.compile(rf"{_NAMES}\s+in\s+{_FILE}")
_DEFINED = r"^\s*(?:(?:async )?def|class) {name}\b|^\s*{name}\b[^=\n]*="


def named_code(page: Path) -> Iterator[tuple[str, Path]]:
    """Yield each name on a page and the file that is said to define it."""
    for names, link, path in _NAMED.findall(page.read_text()):
        below = ROOT if path.startswith("tests/") else ROOT / "shared" / "muster"
        for name in re.findall(r"`(\w+)`", names):
            yield name, page.parent / link if link else below / path


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_name_is_defined_in_its_file(page: Path) -> None:
    """A renamed function is renamed in the documentation too."""
    wrong = [
        f"{name} in {file}"
        for name, file in named_code(page)
        if not file.is_file() or not re.search(_DEFINED.format(name=name), file.read_text(), re.MULTILINE)
    ]
    assert wrong == []


def test_the_pages_that_name_code_are_read() -> None:
    """The pattern finds the names of the two pages that have most."""
    counts = {page.stem: len(list(named_code(page))) for page in PAGES}
    assert counts["check-yourself"] >= 15
    assert counts["glossary"] >= 15

"""docs/speed.md and the pages of docs/speed say what the raw data in bench/results say."""

from __future__ import annotations

import re

from bench import report
from bench.__main__ import FIGURES
from bench.figures import RESULTS
from tests.docs.commands import ROOT

README = (ROOT / "bench" / "README.md").read_text()


def test_the_pages_are_made_of_the_raw_data() -> None:
    """They are not edited by hand; `make bench` writes them, and none is left of a figure that is gone."""
    pages = report.pages(FIGURES)
    assert {path: path.read_text() for path in pages} == pages
    assert set(report.FOLDER.glob("*.md")) == set(pages) - {report.PAGE}


def test_every_figure_is_listed() -> None:
    """In the order of the page, with its module; and no raw data of a figure that is gone are kept."""
    rows = re.findall(r"^\| ([a-z-]+) \| \[(\w+)\.py\]", README, re.MULTILINE)
    assert rows == [(name, name.replace("-", "_")) for name in FIGURES]
    assert {path.stem for path in RESULTS.glob("*.json")} <= set(FIGURES)

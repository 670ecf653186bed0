"""docs/speed.md says what the raw data in bench/results say."""

from __future__ import annotations

import re

from bench.__main__ import FIGURES
from bench.figures import PAGE, RESULTS, figures, page
from tests.docs.commands import ROOT

README = (ROOT / "bench" / "README.md").read_text()


def test_the_page_is_made_of_the_raw_data() -> None:
    """It is not edited by hand; `make bench` writes it."""
    assert PAGE.read_text() == page(figures(FIGURES))


def test_every_figure_is_listed() -> None:
    """In the order of the page, with its module; and no raw data of a figure that is gone are kept."""
    rows = re.findall(r"^\| ([a-z-]+) \| \[(\w+)\.py\]", README, re.MULTILINE)
    assert rows == [(name, name.replace("-", "_")) for name in FIGURES]
    assert {path.stem for path in RESULTS.glob("*.json")} <= set(FIGURES)

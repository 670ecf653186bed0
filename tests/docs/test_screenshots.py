"""The pictures in docs/pictures are what the command prints, and the panels of the dashboard."""

from __future__ import annotations

import json
import re
from html import unescape

import pytest

from muster.files import EVENTING
from tests.docs.commands import ROOT
from tests.docs.screenshots import FOLDER, PICTURES, picture


@pytest.mark.thorough
def test_a_picture_shows_the_report_in_colour() -> None:
    """As text, without a font from the network."""
    svg = picture(("run", "--story", "indexed-job"))
    assert "stories&#160;passed" in svg
    assert "fill: #98a84b" in svg  # green
    assert "font-face" not in svg


def test_the_readme_shows_pictures_that_exist() -> None:
    """Each was made by the script."""
    shown = re.findall(r"\(docs/pictures/([a-z-]+)\.svg\)", (ROOT / "README.md").read_text())
    assert shown
    assert set(shown) <= PICTURES.keys() == {path.stem for path in FOLDER.glob("*.svg")} - {"dashboard"}


def test_the_picture_of_the_dashboard_has_all_its_panels() -> None:
    """A panel that was added or renamed needs a new picture; `python -m tests.docs.dashboard` says how."""
    dashboard = json.loads((EVENTING / "observability" / "dashboard.json").read_text())
    texts = unescape((FOLDER / "dashboard.svg").read_text())
    missing = [panel["title"] for panel in dashboard["panels"] if f">{panel['title']}</text>" not in texts]
    assert missing == []

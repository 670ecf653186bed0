"""The pictures in docs/pictures are what the command prints."""

from __future__ import annotations

import re

from tests.docs.commands import ROOT
from tests.docs.screenshots import FOLDER, PICTURES, picture


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
    assert set(shown) <= PICTURES.keys() == {path.stem for path in FOLDER.glob("*.svg")}

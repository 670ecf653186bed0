"""Pictures of the command in docs/pictures, made by running it.

python -m tests.docs.screenshots     makes them anew
"""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tests.support.processes import MUSTER

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
COLUMNS = 80
PICTURES = {"run": ("run",)}
"""The name of each picture, and the arguments of `muster`."""

_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_CURSOR = re.compile(r"\x1b\[\?25[lh]")
_COLOURED_REPORT = {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(COLUMNS)}
"""Of rich: as on a terminal, without the live view."""


def picture(arguments: tuple[str, ...]) -> str:
    """Return an SVG of a terminal in which `muster` ran with these arguments.

    Raises:
        CalledProcessError: the command failed.
    """
    environment = os.environ | _COLOURED_REPORT
    output = subprocess.run(
        [*MUSTER, *arguments], env=environment, check=True, capture_output=True, text=True
    ).stdout
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(_CURSOR.sub("", output).strip()))
    svg = console.export_svg(title=f"muster {' '.join(arguments)}", unique_id="muster")
    return _FONT.sub("", svg)  # no font from the network; the text is set in the reader's own


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, command in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(picture(command))

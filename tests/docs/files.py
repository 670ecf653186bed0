"""The files that a document shows: a block of code after a paragraph that ends with `` `name`: ``."""

from __future__ import annotations

import re
from pathlib import Path

_SHOWN = re.compile(r"`([\w./-]+)`[^`\n]*:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown_files(document: Path) -> dict[str, str]:
    """Return the content of each file that a document shows, by its name."""
    return dict(_SHOWN.findall(document.read_text()))

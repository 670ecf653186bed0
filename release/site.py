"""The pages of the site of `make docs`: README.md first, then docs/; links to code leave the site."""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPOSITORY = ""
"""Where the code can be read; until there is such a place, links to it are plain text on the site."""
LINK = re.compile(r"\[([^\[\]]*)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
"""Text, path and anchor of a link to a file of this repository."""


def page_of(path: str) -> str:
    """Return where a file of this repository is on the site; "" if it is not."""
    if path == "README.md":
        return "index.md"
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else ""


def text_of(source: str) -> str:
    """Return the text of a page with its links as they are on the site; broken links stay broken."""

    def linked(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        if page := page_of(path):
            target = posixpath.relpath(page, posixpath.dirname(page_of(source)) or ".")
            return f"[{link[1]}]({target}{link[3] or ''})"
        if not (ROOT / path).exists():
            return link[0]
        return f"[{link[1]}]({REPOSITORY}/tree/main/{path}{link[3] or ''})" if REPOSITORY else link[1]

    return LINK.sub(linked, (ROOT / source).read_text())


def main(below: Path) -> None:
    """Write the settings of the site, and all pages, below a folder."""
    folder = below / "pages"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    shutil.copy(ROOT / "release" / "zensical.toml", below)
    sources = ["README.md", *(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]
    for source in sources:
        (folder / page_of(source)).write_text(text_of(source))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The files of a release, where a document names them as if they were in the working directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from release import page
from release.chart import chart

IMAGE = f"registry.example.com/team/muster@sha256:{'a' * 64}"
NEXT_IMAGE = f"registry.example.com/team/muster@sha256:{'b' * 64}"
NEXT = "0.2.0"
"""The version that install.md upgrades to."""
_NAME = re.compile(r"(?<!\S)muster-\S+\.(?:yaml|tgz)(?!\S)")


class ReleaseFiles:
    """A release, and the chart of the next one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        page.write(folder, page.project_version(), IMAGE, lambda _name: None)
        (folder / f"muster-{NEXT}.tgz").write_bytes(page.archive("muster", chart(NEXT, NEXT_IMAGE)))

    def found(self, words: Iterable[str]) -> list[str]:
        """Return words or lines with the paths of the files that they name."""
        return [_NAME.sub(lambda name: str(self.folder / name[0]), word) for word in words]

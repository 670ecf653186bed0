"""The commands in our documents: every line of a ```console block that begins with `$ `."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("functions/**/README.md"),
        *ROOT.glob("tests/**/README.md"),
        ROOT / "bench/README.md",
        ROOT / "eventing/README.md",
    ]
)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        document: where it stands.
        words: as a shell splits it, without its comment.
    """

    document: Path
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """The first word."""
        return self.words[0]

    @property
    def arguments(self) -> list[str]:
        """The others."""
        return list(self.words[1:])

    @property
    def piped(self) -> bool:
        """Whether several programs stand in the line."""
        return "|" in self.words

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}: {shlex.join(self.words)[:90]}"

    def after(self, *options: str) -> list[str]:
        """The words that follow any of some options."""
        return [value for option, value in zip(self.words, self.words[1:], strict=False) if option in options]


def commands(document: Path, heading: str = "") -> list[Command]:
    """All commands of a document, or of the chapter with that heading, in order."""
    text = document.read_text()
    if heading:
        text = text.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    lines = [line for block in _BLOCK.findall(text) for line in block.splitlines()]
    return [
        Command(document, tuple(shlex.split(line[2:], comments=True)))
        for line in lines
        if line.startswith("$ ")
    ]


FOLLOWED = {"testing.md", "tutorial.md", "tutorial-own-step.md", "apiserver.md"}
"""Documents that a test follows as a whole: tests/packages, test_tutorial.py, test_apiserver.py."""

ALL = [command for document in DOCUMENTS if document.name not in FOLLOWED for command in commands(document)]


def of(program: str) -> list[Command]:
    """All commands of one program."""
    return [command for command in ALL if command.program == program]

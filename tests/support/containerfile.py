"""What the Containerfile says, and a folder laid out by it: what an image holds, without a container."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import string
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Instruction:
    """One line: `COPY`, and what follows."""

    word: str
    rest: str

    @property
    def command(self) -> list[str]:
        """The words of RUN or CMD, which stand as JSON so that no shell is between them and the process.

        Raises:
            ValueError: they stand in the shell's form.
        """
        words: list[str] = json.loads(self.rest)
        return words

    def copied(self, arguments: Mapping[str, str]) -> tuple[str, str]:
        """The source of a COPY in the repository, and its place in the image."""
        source, place = string.Template(self.rest).substitute(arguments).split()
        return source, place


def read(text: str = "") -> list[Instruction]:
    """The instructions of a text, else of the Containerfile, in order; none goes over several lines."""
    given = text or (ROOT / "Containerfile").read_text()
    lines = (line.strip() for line in given.splitlines())
    said = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [Instruction(word, rest) for word, _, rest in said]


def shown_in(document: Path) -> list[Instruction]:
    """The instructions of the only Containerfile that a document shows."""
    (text,) = re.findall(r"^```dockerfile\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    return read(text)


def of_word(word: str) -> list[Instruction]:
    """Those of one kind."""
    return [one for one in read() if one.word == word]


def lay_out(step: str, folder: Path) -> None:
    """Make the image's working folder: what each COPY brings, as it is in the repository."""
    for instruction in of_word("COPY"):
        source, place = instruction.copied({"STEP": step})
        found = ROOT / source
        if found.is_dir():
            shutil.copytree(
                found, folder / place, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
            )
        else:
            shutil.copy(found, folder / place)


def run(instruction: Instruction, folder: Path, programs: Path) -> None:
    """Carry a RUN out in a folder, with the programs of another before all others."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(instruction.command, cwd=folder, env=environment, check=True, capture_output=True)


def _outside_the_context(folder: str, names: list[str]) -> list[str]:
    """The names in a folder that a builder is not sent."""
    return [name for name in names if not in_context(str((Path(folder) / name).relative_to(ROOT)))]


def in_context(path: str) -> bool:
    """Whether .dockerignore lets a path through: the last line that matches decides, `!` takes back."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and _fits(path, pattern):
            kept = line.startswith("!")
    return kept


def _fits(path: str, pattern: str) -> bool:
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    if pattern.startswith("**/"):
        return pattern.removeprefix("**/") in parts
    return any(("/" not in one and fnmatch.fnmatch(one, pattern)) or one == pattern for one in above)

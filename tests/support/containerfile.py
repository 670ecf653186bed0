"""The instructions of the Containerfile, and a folder laid out by them like the image."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Instruction:
    """One line: the instruction (`COPY`) and its arguments."""

    word: str
    rest: str

    @property
    def command(self) -> list[str]:
        """The arguments of RUN or ENTRYPOINT in exec form (a JSON list, which no shell interprets)."""
        arguments: list[str] = json.loads(self.rest)
        return arguments

    @property
    def copied(self) -> tuple[str, str]:
        """The source of a COPY in the repository and its path in the image."""
        source, target = self.rest.split()
        return source, target


def of_word(word: str) -> list[Instruction]:
    """Return the Containerfile's instructions of one kind, such as `COPY`."""
    lines = (line.strip() for line in (ROOT / "Containerfile").read_text().splitlines())
    parts = [line.partition(" ") for line in lines]
    return [Instruction(found, rest) for found, _, rest in parts if found == word]


def lay_out(folder: Path) -> None:
    """Copy into a folder what each COPY copies into the image, without what .dockerignore excludes."""
    for instruction in of_word("COPY"):
        source, target = instruction.copied
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, folder / target, ignore=_outside_the_context, dirs_exist_ok=True)
        else:
            shutil.copy(path, folder / target)


def run(instruction: Instruction, folder: Path, programs: Path) -> None:
    """Execute a RUN in a folder, with the folder `programs` first on PATH."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(instruction.command, cwd=folder, env=environment, check=True, capture_output=True)


def _outside_the_context(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that .dockerignore excludes."""
    return [name for name in names if not in_context(str((Path(folder) / name).relative_to(ROOT)))]


def in_context(path: str) -> bool:
    """Return whether a path is in the build context: the last matching line of .dockerignore decides."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and _fits(path, pattern):
            kept = line.startswith("!")
    return kept


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return pattern.removeprefix("**/") in path.split("/")
    return pattern in {"*", path} or path.startswith(f"{pattern}/")

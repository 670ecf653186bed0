"""Muster as others have it: the wheel in a virtual environment of its own, without the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """Build the wheel as a release builds it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


class Installed:
    """A virtual environment with the wheel and its declared dependencies, and nothing else.

    The dependencies, with those of the extra `testing`, are links to what is installed here, so no package
    index is needed.
    """

    def __init__(self, folder: Path, wheel: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.bin = folder / "bin"
        pip = [sys.executable, "-m", "pip", "--python", str(self.bin / "python")]
        install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
        subprocess.run([*pip, *install], check=True, capture_output=True)
        packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        for distribution in _dependencies(Requirement("muster-gangs[testing]")):
            for top in _tops(distribution):
                if not (packages / top.name).exists():
                    (packages / top.name).symlink_to(top)

    def run(self, *command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, `muster` or `python`, in a folder; standard error is appended."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))
        }
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=cwd,
            env={**kept, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def _dependencies(root: Requirement) -> Iterator[metadata.Distribution]:
    """Yield the distributions that Muster needs with an extra."""
    seen: set[tuple[str, str]] = set()
    names = {"muster-gangs"}
    waiting = [(root.name, extra) for extra in ("", *root.extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        distribution = metadata.distribution(name)
        if name not in names:
            names.add(name)
            yield distribution
        for requirement in map(Requirement, distribution.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]


def _tops(distribution: metadata.Distribution) -> Iterator[Path]:
    """Yield the folders and modules of a distribution in site-packages."""
    base = Path(str(distribution.locate_file("")))
    names = {file.parts[0] for file in distribution.files or () if ".." not in file.parts}
    yield from (base / name for name in sorted(names - {"__pycache__"}))

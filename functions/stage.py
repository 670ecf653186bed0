"""Assemble the func project of each function: `make stage`, for one's own too `make stage STEPS=FOLDER`.

A staged project has the function's own code, the files that all functions share (functions/template) and the
packages of `muster` that functions import. Simulators, the CLI and its subcommands stay out of images.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import yaml

FUNCTIONS = Path(__file__).parent
TEMPLATE = FUNCTIONS / "template"
MUSTER = FUNCTIONS.parent / "shared" / "muster"
PARTS = ("__init__.py", "library.py", "data", "objects", "policy", "events", "cluster", "runtime")
"""What functions import of the package."""

CREATED = "created: 2026-11-21T00:00:00Z\n"
"""func takes a project without a time for one that was not initialised, and reads RFC 3339 alone."""

_MARKER = ".written-by-make-stage"
"""The file in a folder of projects by which it is known as one: no other folder is emptied."""
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "tests", ".*")


def main(arguments: Sequence[str]) -> int:
    """Write the project of every function, and of the steps in further folders, to the folder OUT."""
    out, *own = arguments
    folder = Path(out)
    if not out or (folder.exists() and not (folder / _MARKER).is_file() and any(folder.iterdir())):
        print(
            f"OUT={out}: has files that `make stage` did not write; empty it, or name another",
            file=sys.stderr,
        )
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / _MARKER).touch()
    for function in [*(func.parent for func in FUNCTIONS.glob("*/func.yaml")), *map(Path, own)]:
        stage(function, folder / function.resolve().name)
    print(f"Deploy one with: func deploy --path {out}/create_workload; without func see Containerfile")
    return 0


def stage(function: Path, project: Path) -> None:
    """Write the project of one function."""
    shutil.copytree(TEMPLATE / "function", project / "function", ignore=_LEFT_OUT)
    shutil.copytree(function, project, ignore=_LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(
        MUSTER,
        project / "muster",
        ignore=lambda folder, names: [
            name for name in names if name == "__pycache__" or (Path(folder) == MUSTER and name not in PARTS)
        ],
    )
    common, own = (
        yaml.safe_load((folder).read_text()) for folder in (TEMPLATE / "common.yaml", function / "func.yaml")
    )
    (project / "func.yaml").write_text(CREATED + yaml.safe_dump(merged(common, own), sort_keys=False))
    root = tomllib.loads((FUNCTIONS.parent / "pyproject.toml").read_text())["project"]
    pyproject = Template((TEMPLATE / "pyproject.toml.in").read_text()).substitute(
        description=json.dumps(f"Muster's function {function.resolve().name}"),
        python=root["requires-python"],
        dependencies=json.dumps([*locked_versions(), *own_dependencies(function / "pyproject.toml")]),
    )
    (project / "pyproject.toml").write_text(pyproject)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; values of `above` win."""
    result = dict(below)
    for name, value in above.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merged(result[name], value) if both_are_mappings else value
    return result


def own_dependencies(pyproject: Path) -> list[str]:
    """Return the dependencies of a user's step without Muster, which the staged project contains."""
    project = tomllib.loads(pyproject.read_text())["project"] if pyproject.exists() else {}
    return [entry for entry in project.get("dependencies", []) if not entry.startswith("muster-gangs")]


def locked_versions() -> list[str]:
    """Return the packages of requirements.txt as `flask==3.1.3`, dependencies of dependencies included."""
    lock = (FUNCTIONS.parent / "requirements.txt").read_text()
    return re.findall(r"^([a-z0-9._-]+==[^\\\n]+?) *\\$", lock, re.MULTILINE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

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
PARTS = ("__init__.py", "library", "data", "objects", "policy", "events", "cluster", "runtime")
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
        why = "has files that `make stage` did not write; empty it, or name another"
        print(f"OUT={out}: {why}", file=sys.stderr)
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
    (project / "muster").mkdir(exist_ok=True)
    for part in PARTS:
        if part.endswith(".py"):
            shutil.copy(MUSTER / part, project / "muster")
        else:
            shutil.copytree(MUSTER / part, project / "muster" / part, ignore=_LEFT_OUT)
    common = yaml.safe_load((TEMPLATE / "common.yaml").read_text())
    own = yaml.safe_load((function / "func.yaml").read_text())
    (project / "func.yaml").write_text(CREATED + yaml.safe_dump(merged(common, own), sort_keys=False))
    pyproject, lock = function / "pyproject.toml", (FUNCTIONS.parent / "requirements.txt").read_text()
    own_project = tomllib.loads(pyproject.read_text())["project"] if pyproject.exists() else {}
    needed = own_project.get("dependencies", [])
    pins = re.findall(r"^([a-z0-9._-]+==[^\\\n]+?) *\\$", lock, re.MULTILINE)
    root = tomllib.loads((FUNCTIONS.parent / "pyproject.toml").read_text())["project"]
    text = Template((TEMPLATE / "pyproject.toml.in").read_text()).substitute(
        description=json.dumps(f"Muster's function {function.resolve().name}"),
        python=root["requires-python"],
        # Without Muster itself, which the staged project contains.
        dependencies=json.dumps([*pins, *(name for name in needed if not name.startswith("muster-gangs"))]),
    )
    (project / "pyproject.toml").write_text(text)


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; values of `above` win."""
    result = dict(below)
    for name, value in above.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merged(result[name], value) if both_are_mappings else value
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

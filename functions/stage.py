"""Write a func project of each function: its folder, functions/template, and what it imports of `muster`."""

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
ROOT, TEMPLATE = FUNCTIONS.parent, FUNCTIONS / "template"
PARTS = ("library", "data", "objects", "policy", "events", "cluster", "runtime")
"""What functions import of the package."""

CREATED = "created: 2026-11-21T00:00:00Z\n"
"""func takes a project without a time for one that was not initialised, and reads RFC 3339 alone."""

_MARKER = ".written-by-make-stage"
"""The file in a folder of projects by which it is known as one: no other folder is emptied."""


def main(arguments: Sequence[str]) -> None:
    """Write the project of every function, and of the steps in further folders, to the folder OUT."""
    out, *own = arguments
    folder = Path(out)
    if not out or (folder.exists() and not (folder / _MARKER).is_file() and any(folder.iterdir())):
        sys.exit(f"OUT={out}: has files that `make stage` did not write; empty it, or name another")
    shutil.rmtree(folder, ignore_errors=True)
    for function in [*(func.parent for func in FUNCTIONS.glob("*/func.yaml")), *map(Path, own)]:
        stage(function, folder / function.resolve().name)
    (folder / _MARKER).touch()
    print(f"Deploy one with: func deploy --path {out}/create_workload; without func see Containerfile")


def stage(function: Path, project: Path) -> None:
    """Write the project of one function."""
    left_out = shutil.ignore_patterns("__pycache__", "tests", ".*")
    for source, target in (
        (TEMPLATE / "function", project / "function"),
        (function, project),
        *((ROOT / "shared/muster" / part, project / "muster" / part) for part in PARTS),
    ):
        shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True)
    shutil.copy(ROOT / "shared/muster/__init__.py", project / "muster")
    common = yaml.safe_load((TEMPLATE / "common.yaml").read_text())
    own = yaml.safe_load((function / "func.yaml").read_text())
    (project / "func.yaml").write_text(CREATED + yaml.safe_dump(merged(common, own), sort_keys=False))
    pyproject, text = function / "pyproject.toml", (TEMPLATE / "pyproject.toml.in").read_text()
    needed = tomllib.loads(pyproject.read_text())["project"]["dependencies"] if pyproject.exists() else []
    locked = (ROOT / "requirements.txt").read_text()
    pins = re.findall(r"^([a-z0-9._-]+==[^\\\n]+?) *\\$", locked, re.MULTILINE)
    values = {
        "description": json.dumps(f"Muster's function {function.resolve().name}"),
        "python": tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"],
        "dependencies": json.dumps(pins + [name for name in needed if not name.startswith("muster-gangs")]),
    }
    (project / "pyproject.toml").write_text(Template(text).substitute(values))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; values of `above` win."""
    both = {name for name in below.keys() & above.keys() if isinstance(above[name], Mapping)}
    return {**below, **above, **{name: merged(below[name], above[name]) for name in both}}


if __name__ == "__main__":
    main(sys.argv[1:])

"""Assemble the func project of each function: `make stage`, for one's own too `make stage STEPS=FOLDER`.

A staged project has the function's own code, the files that all functions share (functions/template) and the
packages of `muster` that functions import. Simulators, the CLI and its subcommands stay out of images.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any

import yaml

FUNCTIONS = Path(__file__).parent
TEMPLATE = FUNCTIONS / "template"
MUSTER = FUNCTIONS.parent / "shared" / "muster"
PACKAGES = ("objects", "policy", "events", "cluster", "runtime")
"""The packages that functions import; a test compares the list with the imports."""
MODULES = ("__init__.py", "library.py")
"""The package itself, and the public names, which steps of other teams import."""


class _Dumper(yaml.SafeDumper):
    """Writes times as RFC 3339, the only form that func reads."""


_Dumper.add_representer(
    datetime,
    lambda dumper, time: dumper.represent_scalar("tag:yaml.org,2002:timestamp", f"{time:%Y-%m-%dT%H:%M:%SZ}"),
)

_WITHOUT_BYTECODE = shutil.ignore_patterns("__pycache__")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "tests", ".*")
"""What a folder of a step has beside its function."""


def main(out: Path, own: Sequence[Path] = ()) -> None:
    """Write the project of every function to `out`, which is emptied first.

    Args:
        out: the folder of the projects.
        own: folders of further steps, as `muster new-step` writes them.
    """
    shutil.rmtree(out, ignore_errors=True)
    for folder in [*sorted(func.parent for func in FUNCTIONS.glob("*/func.yaml")), *own]:
        stage(folder, out / folder.resolve().name)
    print(f"Deploy one with: func deploy --path {out}/create_workload; without func see Containerfile")  # noqa: T201


def stage(function: Path, project: Path) -> None:
    """Write the project of one function; a folder without func.yaml ends the program with a message."""
    if not (function / "func.yaml").is_file():
        sys.exit(
            f"{function}/func.yaml: No such file; a folder of a step has one, as `muster new-step` writes it"
        )
    shutil.copytree(TEMPLATE / "function", project / "function", ignore=_WITHOUT_BYTECODE)
    shutil.copytree(function, project, ignore=_LEFT_OUT, dirs_exist_ok=True)
    for package in PACKAGES:
        shutil.copytree(MUSTER / package, project / "muster" / package, ignore=_WITHOUT_BYTECODE)
    for module in MODULES:
        shutil.copy(MUSTER / module, project / "muster")
    common, own = (
        yaml.safe_load(path.read_text()) for path in (TEMPLATE / "common.yaml", function / "func.yaml")
    )
    (project / "func.yaml").write_text(yaml.dump(merged(common, own), Dumper=_Dumper, sort_keys=False))
    own_dependencies = _own_dependencies(function / "pyproject.toml")
    (project / "pyproject.toml").write_text(_pyproject(project, own_dependencies))


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; values of `above` win."""
    result = dict(below)
    for name, value in above.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merged(result[name], value) if both_are_mappings else value
    return result


def _own_dependencies(pyproject: Path) -> list[str]:
    """Return the dependencies of a user's step without Muster, which the staged project contains."""
    if not pyproject.exists():
        return []
    wanted = tomllib.loads(pyproject.read_text())["project"].get("dependencies", [])
    return [entry for entry in wanted if not entry.startswith("muster-gangs")]


def _pyproject(project: Path, own_dependencies: Sequence[str]) -> str:
    """Return the pyproject.toml of a function, with every dependency of Muster in its locked version."""
    root = tomllib.loads((FUNCTIONS.parent / "pyproject.toml").read_text())["project"]
    code = next(
        path
        for path in (project / "function" / "step.py", project / "function" / "__init__.py")
        if path.exists()
    )
    description = (ast.get_docstring(ast.parse(code.read_text())) or "").splitlines()[0]
    return Template((TEMPLATE / "pyproject.toml.in").read_text()).substitute(
        description=description.replace('"', "'"),
        python=root["requires-python"],
        dependencies=json.dumps([*locked_versions(), *own_dependencies]),
    )


def locked_versions() -> list[str]:
    """Return the packages of requirements.txt as `flask==3.1.3`, dependencies of dependencies included.

    Without hashes, which only a requirements file can have, and without func-python, which func brings.
    """
    lock = (FUNCTIONS.parent / "requirements.txt").read_text()
    pins = re.findall(r"^([a-z0-9._-]+==[^\\\n]+?) *\\$", lock, re.MULTILINE)
    return [pin for pin in pins if not pin.startswith("func-python==")]


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(argument) for argument in sys.argv[2:]])

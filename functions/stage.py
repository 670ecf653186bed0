"""Assemble the func project of each function: `make stage`, for one's own too `make stage STEPS=FOLDER`.

A staged project has the function's own code, the files that all functions share (functions/template) and the
packages of `muster` that functions import. Simulators, the CLI and its subcommands stay out of images.
"""

from __future__ import annotations

import ast
import json
import os
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

from muster.objects import yaml_files

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

_MARKER = ".written-by-make-stage"
"""The file in a folder of projects by which it is known as one: no other folder is emptied."""

_WITHOUT_BYTECODE = shutil.ignore_patterns("__pycache__")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "tests", ".*")
"""What a folder of a step has beside its function."""


class StageError(ValueError):
    """Functions cannot be staged as asked; the message is one line for who asked."""


def main(arguments: Sequence[str]) -> int:
    """Run the command: OUT and the folders of further steps; an error is one line, and exit code 2."""
    out, *own = arguments
    try:
        write(out, [Path(folder) for folder in own])
    except (StageError, OSError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)  # noqa: T201
        return 2
    print(f"Deploy one with: func deploy --path {out}/create_workload; without func see Containerfile")  # noqa: T201
    return 0


def write(out: str, own: Sequence[Path] = ()) -> None:
    """Write the project of every function to `out`, in place of those of an earlier call.

    Args:
        out: the folder of the projects.
        own: folders of further steps, as `muster new-step` writes them.

    Raises:
        StageError: `out` has files of others, a folder has no step, or two of them have one name.
        OSError: a file cannot be read or written.
    """
    sources = [*sorted(func.parent for func in FUNCTIONS.glob("*/func.yaml")), *own]
    projects: dict[str, Path] = {}
    for folder in sources:
        if not (folder / "func.yaml").is_file():
            raise StageError(
                f"{folder}/func.yaml: No such file; a step's folder has one, as `muster new-step` writes it"
            )
        name = folder.resolve().name
        if name in projects:
            raise StageError(f"{folder}: {projects[name]} is a function of that name too")
        projects[name] = folder
    emptied = _emptied(out, [TEMPLATE, MUSTER, *sources])
    for name, folder in projects.items():
        stage(folder, emptied / name)


def _emptied(out: str, sources: Sequence[Path]) -> Path:
    """Make the folder of the projects, or empty it if this program wrote it.

    Raises:
        StageError: something would be deleted that this program did not write, or that it has to read.
    """
    folder = Path(os.path.realpath(out))
    if not out or FUNCTIONS.parent.resolve().is_relative_to(folder):
        raise StageError(f"OUT={out}: must be a folder for the projects alone, which is emptied first")
    for source in sources:
        here = source.resolve()
        if here.is_relative_to(folder) or folder.is_relative_to(here):
            raise StageError(f"OUT={out}: {source}, which is to be read, may be neither in it nor around it")
    if folder.exists() and not (folder / _MARKER).is_file() and any(folder.iterdir()):
        raise StageError(f"OUT={out}: has files that `make stage` did not write; empty it, or name another")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / _MARKER).touch()
    return folder


def stage(function: Path, project: Path) -> None:
    """Write the project of one function.

    Raises:
        StageError: its folder has no step that can be read, or something other than files.
    """
    shutil.copytree(TEMPLATE / "function", project / "function", ignore=_WITHOUT_BYTECODE)
    shutil.copytree(function, project, ignore=_left_out, dirs_exist_ok=True)
    for package in PACKAGES:
        shutil.copytree(MUSTER / package, project / "muster" / package, ignore=_WITHOUT_BYTECODE)
    for module in MODULES:
        shutil.copy(MUSTER / module, project / "muster")
    common, own = _mapping(TEMPLATE / "common.yaml"), _mapping(function / "func.yaml")
    (project / "func.yaml").write_text(yaml.dump(merged(common, own), Dumper=_Dumper, sort_keys=False))
    own_dependencies = _own_dependencies(function / "pyproject.toml")
    (project / "pyproject.toml").write_text(_pyproject(function, own_dependencies))


def _left_out(folder: str, names: list[str]) -> set[str]:
    """Return what is not copied of a folder of a step.

    Raises:
        StageError: it has a symbolic link, which would copy files from elsewhere, or a device.
    """
    left_out = _LEFT_OUT(folder, names)
    for path in (Path(folder, name) for name in names if name not in left_out):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise StageError(f"{path}: is no file of the step: a symbolic link would copy what it leads to")
    return left_out


def _mapping(path: Path) -> dict[str, Any]:
    """Return the fields of a YAML file.

    Raises:
        StageError: it is no YAML mapping.
    """
    try:
        fields = yaml_files.load(path.read_text())
    except (yaml.YAMLError, ValueError) as error:
        raise StageError(f"{path}: is not YAML: {error}") from None
    if not isinstance(fields, dict):
        raise StageError(f"{path}: has no fields")
    return fields


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings recursively; values of `above` win."""
    result = dict(below)
    for name, value in above.items():
        both_are_mappings = isinstance(value, Mapping) and isinstance(result.get(name), Mapping)
        result[name] = merged(result[name], value) if both_are_mappings else value
    return result


def _own_dependencies(pyproject: Path) -> list[str]:
    """Return the dependencies of a user's step without Muster, which the staged project contains.

    Raises:
        StageError: the file has no list of them.
    """
    if not pyproject.exists():
        return []
    try:
        project = tomllib.loads(pyproject.read_text()).get("project", {})
    except ValueError:
        raise StageError(f"{pyproject}: is not TOML") from None
    wanted = project.get("dependencies", []) if isinstance(project, dict) else None
    if not isinstance(wanted, list) or not all(isinstance(entry, str) for entry in wanted):
        raise StageError(f"{pyproject}: project.dependencies: must be a list of strings")
    return [entry for entry in wanted if not entry.startswith("muster-gangs")]


def _pyproject(function: Path, own_dependencies: Sequence[str]) -> str:
    """Return the pyproject.toml of a function, with every dependency of Muster in its locked version."""
    root = tomllib.loads((FUNCTIONS.parent / "pyproject.toml").read_text())["project"]
    return Template((TEMPLATE / "pyproject.toml.in").read_text()).substitute(
        description=_as_toml(_first_line(function)),
        python=root["requires-python"],
        dependencies=_as_toml([*locked_versions(), *own_dependencies]),
    )


def _first_line(function: Path) -> str:
    """Return the first line of the docstring of a function's code, which may be empty.

    Raises:
        StageError: the function has no code that can be parsed.
    """
    codes = [function / "function" / name for name in ("step.py", "__init__.py")]
    code = next((path for path in codes if path.is_file()), None)
    if code is None:
        raise StageError(f"{codes[0]}: No such file; it has the code of the step")
    try:
        docstring = ast.get_docstring(ast.parse(code.read_text())) or ""
    except (SyntaxError, ValueError):
        raise StageError(f"{code}: is not Python") from None
    line = docstring.partition("\n")[0]
    return "".join(character if character.isprintable() else " " for character in line)


def _as_toml(value: str | Sequence[str]) -> str:
    """Return texts as they are in TOML, whose escapes within a line are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def locked_versions() -> list[str]:
    """Return the packages of requirements.txt as `flask==3.1.3`, dependencies of dependencies included.

    Without hashes, which only a requirements file can have, and without func-python, which func brings.
    """
    lock = (FUNCTIONS.parent / "requirements.txt").read_text()
    pins = re.findall(r"^([a-z0-9._-]+==[^\\\n]+?) *\\$", lock, re.MULTILINE)
    return [pin for pin in pins if not pin.startswith("func-python==")]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Loading steps by path from the folders of functions/ or of one's own: a func project is no package."""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from traceback import extract_tb

from muster.data import FUNCTIONS
from muster.runtime.step import Step

OPTIONAL = frozenset({"restart_gang"})
"""The steps that only a component of eventing/components installs."""

_STEP = Path("function/step.py")


class BadStepError(LookupError):
    """A step.py cannot be loaded; the message has its path, the line and the error."""


def step_names() -> list[str]:
    """Return the names of all steps: `create_workload` for functions/create_workload/function/step.py."""
    return sorted(path.parents[1].name for path in FUNCTIONS.glob("*/function/step.py"))


def step_named(name: str) -> Step:
    """Return the step of that name, `create_workload` or `create-workload`."""
    return load_step(step_file(name))


def step_file(name: str, own: Mapping[str, Path] | None = None) -> Path:
    """Return the step.py of a step or Service."""
    folder, service = name.replace("-", "_"), name.replace("_", "-")
    if own and service in own:
        return own[service]
    if folder not in step_names():
        raise LookupError(f"no function {name!r}; known: {', '.join([*step_names(), *(own or ())])}")
    return FUNCTIONS / folder / _STEP


def find_step(name: str) -> Step:
    """Return the step of a name, or of the path of another step: its folder or its step.py."""
    path = Path(name)
    for file in (path, path / _STEP):
        if file.suffix == ".py" and file.is_file():
            return load_step(file.resolve())
    try:
        return step_named(name)
    except LookupError as error:
        raise LookupError(f"{error.args[0]}; nor is {path / _STEP} a file") from None


@cache
def load_step(path: Path) -> Step:
    """Return the `STEP` of a file; the file is executed once per process."""
    try:
        step = runpy.run_path(str(path)).get("STEP")
    except Exception as error:
        lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
        place = f"{path}:{lines[-1]}" if lines else path
        raise BadStepError(f"{place}: {type(error).__name__}: {error}") from error
    if not isinstance(step, Step):
        raise BadStepError(f"{path}: has no STEP, which is a muster.Step")
    return step

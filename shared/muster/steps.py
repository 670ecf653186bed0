"""Loading steps from the folders of functions/.

A func project is no package (its code is called `function` in every folder), so a step is loaded from its
path. A checkout has the folders beside shared/, an installed package below muster/data.
"""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path
from typing import cast

from muster.files import FUNCTIONS
from muster.runtime.step import Step


def step_names() -> list[str]:
    """The names of all steps: `create_workload` for functions/create_workload/function/step.py."""
    return sorted(path.parents[1].name for path in FUNCTIONS.glob("*/function/step.py"))


@cache
def step_named(name: str) -> Step:
    """The step of that name, `create_workload` or `create-workload`.

    Raises:
        LookupError: there is no such step; the message lists all names.
    """
    folder = name.replace("-", "_")
    if folder not in step_names():
        raise LookupError(f"no function {name!r}; known: {', '.join(step_names())}")
    return load_step(FUNCTIONS / folder / "function" / "step.py")


@cache
def load_step(path: Path) -> Step:
    """The `STEP` of a file; the file is executed once per process."""
    return fresh_step(path)


def fresh_step(path: Path) -> Step:
    """The `STEP` of a file; the file is executed at every call."""
    return cast(Step, runpy.run_path(str(path))["STEP"])

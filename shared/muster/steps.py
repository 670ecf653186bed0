"""List and load the steps in functions/.

A func project is no package (its code is called `function` in every folder), so a step is loaded from its
path. In a checkout the folders are beside shared/, in an installed package below muster/data.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from muster.files import FUNCTIONS
from muster.runtime.step import Step


def step_names() -> list[str]:
    """Return the names of all steps: `create_workload` for functions/create_workload/function/step.py."""
    return sorted(path.parents[1].name for path in FUNCTIONS.glob("*/function/step.py"))


def step_named(name: str) -> Step:
    """Return the step of a function, `create_workload` or `create-workload`.

    Raises:
        LookupError: there is no such function; the message lists all names.
    """
    folder = name.replace("-", "_")
    if folder not in step_names():
        raise LookupError(f"no function is called {name!r}; there are {', '.join(step_names())}")
    return load_step(FUNCTIONS / folder / "function" / "step.py")


def load_step(path: Path) -> Step:
    """Return the `STEP` of a file, which is executed once per process."""
    name = f"functions.{path.parents[1].name}.function.step"
    module = sys.modules.get(name)
    if module is None:
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise LookupError(f"{path} is no Python file")
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)
    step: Step = module.STEP
    return step

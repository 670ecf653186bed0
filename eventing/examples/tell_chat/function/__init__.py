"""The entry point of func's Python middleware."""

from muster import serve_step

from .step import STEP


def new() -> object:
    """One instance of the step, set up from the environment."""
    return serve_step(STEP)

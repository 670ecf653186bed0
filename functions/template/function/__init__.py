"""The entry point of func's Python middleware: `new` returns the step."""

from importlib import import_module


def new() -> object:
    """Return the step behind func's middleware, set up from the environment."""
    # Not at the top: planning and the local stack load `step` without func.
    from muster.runtime.knative import serve_step  # noqa: PLC0415

    return serve_step(import_module(".step", __package__).STEP)

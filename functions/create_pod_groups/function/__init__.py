"""What func's Python middleware starts: `new` gives it one instance of the step."""


def new() -> object:
    """The step behind func's middleware, set up from the environment."""
    # Not at the top: whoever imports only `step`, as planning and the local stack do, needs no func.
    from muster.runtime.knative import serve_step  # noqa: PLC0415

    from .step import STEP  # noqa: PLC0415

    return serve_step(STEP)

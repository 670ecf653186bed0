"""The entry point of func's Python middleware: `new` returns the store of dead letters."""


def new() -> object:
    """Return the store of dead letters behind func's middleware, set up from the environment."""
    # Not at the top, as in the other functions: importing this package needs no func.
    from muster.runtime.knative import serve_step  # noqa: PLC0415

    return serve_step(None)

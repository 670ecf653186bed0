"""What func's Python middleware starts: `new` gives it what keeps dead letters."""


def new() -> object:
    """The function behind func's middleware, set up from the environment."""
    # Not at the top, as in the other functions: whoever only looks at this package needs no func.
    from muster.runtime.knative import serve_dead_letters  # noqa: PLC0415

    return serve_dead_letters()

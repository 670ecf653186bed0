"""Gang scheduling for Kubernetes by steps that react to events; the public names are in `muster.library`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """A public name; the library is imported at the first use, so that commands import what they need."""
    library = None if name.startswith("_") else import_module("muster.library")
    if library is None or name not in library.__all__:
        raise AttributeError(f"module {__name__!r} has no public name {name!r}")
    return getattr(library, name)

"""The objects of overlays and other folders of `eventing/`, each read once for all tests of a process."""

from __future__ import annotations

from functools import cache

from muster.data import EVENTING
from muster.simulator.overlays import Manifest, built, load


@cache
def objects_of(overlay: str) -> list[Manifest]:
    """Return the objects of an overlay of `eventing/`, which no test may change."""
    return load(built(overlay))


@cache
def objects_in(folder: str) -> list[Manifest]:
    """Return the objects of a plain folder of `eventing/`, which no test may change."""
    return load(EVENTING / folder)

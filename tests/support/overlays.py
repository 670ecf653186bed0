"""The objects of overlays and other folders of `eventing/`, each read once for all tests of a process."""

from __future__ import annotations

from functools import cache

from muster.data import EVENTING
from muster.kustomize import Manifest, load


@cache
def objects_of(folder: str) -> list[Manifest]:
    """Return the objects of a folder of `eventing/`, which no test may change."""
    return load(EVENTING / folder)

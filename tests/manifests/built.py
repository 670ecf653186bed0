"""Writes what `kubectl kustomize` builds of each overlay to eventing/built: `make manifests`."""

from __future__ import annotations

from muster.data import EVENTING
from muster.simulator.overlays import built
from tests.cluster import kubectl

OVERLAYS = sorted(path.name for path in (EVENTING / "overlays").iterdir() if path.is_dir())


def build(overlay: str) -> str:
    """Return what kubectl builds of an overlay."""
    return kubectl.run("kustomize", str(EVENTING / "overlays" / overlay))


if __name__ == "__main__":
    for name in OVERLAYS:
        built(name).write_text(build(name))

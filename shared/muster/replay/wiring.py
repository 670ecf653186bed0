"""The triggers, watched kinds and Kubernetes release of an overlay, for a replay."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from muster.objects.resources import POD_GROUPS, Resource
from muster.simulator.broker import Wiring
from muster.simulator.overlays import load_beside_muster, of_kind
from muster.simulator.source import SourceSpec


@cache
def wiring_of(overlay: Path) -> Wiring:
    """Return the triggers of an overlay, without its PingSources."""
    return Wiring.from_manifests(load_beside_muster(overlay)).without_timers()


@cache
def watched_kinds(overlay: Path) -> tuple[tuple[Resource, str], ...]:
    """Return the resources that the ApiServerSources of an overlay watch, each with its label selector."""
    specs = map(SourceSpec.from_manifest, of_kind(load_beside_muster(overlay), "ApiServerSource"))
    return tuple((kind.resource, kind.selector) for spec in specs for kind in spec.kinds)


def release_of(overlay: Path) -> str:
    """Return the Kubernetes release that an overlay is for: 1.36 alone serves scheduling.k8s.io/v1alpha2."""
    versions = {kind.version for kind, _ in watched_kinds(overlay) if kind.group == POD_GROUPS.group}
    return "1.36" if "v1alpha2" in versions else "1.37"

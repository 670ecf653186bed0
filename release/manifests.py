"""The manifest of an overlay as one file, with the image by its digest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from muster.kustomize import Manifest, load

TO_COPY = frozenset({"example", "one-namespace"})
"""Overlays that name someone's namespace or registry; the chart's values stand for them."""

_IMAGE = "muster/muster"


class _ManifestDumper(yaml.SafeDumper):
    """Writes long texts as they are read, and every value in full."""

    def ignore_aliases(self, _data: Any) -> bool:
        """Write a value that occurs twice two times."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_ManifestDumper.add_representer(str, _text)


def overlays(eventing: Path) -> list[str]:
    """Return the names of the overlays that get a manifest."""
    return sorted(
        path.parent.name
        for path in eventing.glob("overlays/*/kustomization.yaml")
        if path.parent.name not in TO_COPY
    )


def objects(overlay: Path, image: str) -> list[Manifest]:
    """Return the objects of an overlay, with the image of the release in every function.

    Raises:
        UnsupportedManifestError: the overlay has a field that muster.kustomize does not implement.
    """
    made = load(overlay)
    for manifest in made:
        if manifest["apiVersion"] == "serving.knative.dev/v1":
            for container in manifest["spec"]["template"]["spec"]["containers"]:
                container["image"] = container["image"].replace(_IMAGE, image)
    return made


def manifest_text(overlay: Path, version: str, image: str) -> str:
    """Return the objects of an overlay as YAML documents."""
    name = f"muster-{overlay.name}.yaml"
    header = f"# Muster {version}, overlay {overlay.name}: kubectl apply -f {name}\n---\n"
    return header + yaml.dump_all(
        objects(overlay, image), Dumper=_ManifestDumper, sort_keys=False, width=1000
    )

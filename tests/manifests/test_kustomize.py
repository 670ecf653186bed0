"""Our reader of the YAML and kubectl's build the same objects."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from eventing.local.manifests import EVENTING, load

OVERLAYS = sorted(path for path in (EVENTING / "overlays").iterdir() if path.is_dir())


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_every_overlay_builds_and_names_nothing_twice(overlay: Path) -> None:
    """An object that two files make would be made by whichever is applied last."""
    names = [_name(one) for one in load(overlay)]
    assert names
    assert len(names) == len(set(names))


def test_no_file_is_forgotten() -> None:
    """A YAML file that no kustomization names is installed nowhere."""
    named = {path.resolve() for folder in EVENTING.rglob("kustomization.yaml") for path in _resources(folder)}
    files = {path.resolve() for path in EVENTING.rglob("*.yaml") if "local" not in path.parts}
    assert {path for path in files if path.name != "kustomization.yaml"} <= named


@pytest.mark.real
@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_kubectl_builds_the_same(overlay: Path) -> None:
    """What `muster run` is wired by is what `kubectl apply -k` installs."""
    built = subprocess.run(["kubectl", "kustomize", str(overlay)], check=True, capture_output=True, text=True)
    theirs = {_name(one): one for one in yaml.safe_load_all(built.stdout)}
    assert {_name(one): one for one in load(overlay)} == theirs


def _resources(kustomization: Path) -> list[Path]:
    return [kustomization.parent / entry for entry in yaml.safe_load(kustomization.read_text())["resources"]]


def _name(one: dict[str, Any]) -> tuple[str, str, str, str]:
    metadata = one["metadata"]
    return one["apiVersion"], one["kind"], metadata.get("namespace", ""), metadata["name"]

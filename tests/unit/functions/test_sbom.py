"""The bill of materials lists what the images install, each part with its hashes and a permissive licence."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
LOCKED = (ROOT / "requirements.txt").read_text()
PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MPL-2.0",  # certifi: per file, of a list of certificates
    "PSF-2.0",
}


def _bill_of_materials() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "functions" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    document: dict[str, Any] = json.loads(module.bill_of_materials(LOCKED))
    return document


BOM = _bill_of_materials()
PARTS = {part["name"]: part for part in BOM["components"]}


def test_every_locked_package_is_listed_in_its_version() -> None:
    """The names come from the lines that pip reads."""
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", LOCKED, re.MULTILINE))
    assert {name: part["version"] for name, part in PARTS.items()} == pinned
    assert BOM["metadata"]["component"]["name"] == "muster-gangs"
    (dependencies,) = [entry["dependsOn"] for entry in BOM["dependencies"] if entry["ref"] == "muster-gangs"]
    assert len(dependencies) == len(pinned)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_its_hashes_and_a_permissive_licence(name: str) -> None:
    """A package under another licence needs a decision before it gets into an image."""
    part = PARTS[name]
    assert part["purl"] == f"pkg:pypi/{name}@{part['version']}"
    assert len(part["hashes"]) == _block_of(name).count("--hash=sha256:") > 0
    licences = {entry.get("expression") or entry["license"]["id"] for entry in part["licenses"]}
    named = {key for text in licences for key in re.split(r" AND | OR ", text)}
    assert named
    assert named <= PERMISSIVE


def _block_of(name: str) -> str:
    """The lines of one package in requirements.txt."""
    _, _, rest = LOCKED.partition(f"\n{name}==") if not LOCKED.startswith(f"{name}==") else ("", "", LOCKED)
    return rest.partition("# via")[0]

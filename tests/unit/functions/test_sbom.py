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
PINNED = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", LOCKED, re.MULTILINE))
"""The versions of the packages, as pip reads them."""
PERMISSIVE = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "MIT",
    "MPL-2.0",  # certifi: per file, of a list of certificates
    "PSF-2.0",
    "ZPL-2.1",
}


@pytest.fixture(name="document", scope="module")
def _document() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "functions" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    document: dict[str, Any] = json.loads(module.bill_of_materials(LOCKED))
    return document


@pytest.fixture(name="parts", scope="module")
def _parts(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {part["name"]: part for part in document["components"]}


@pytest.mark.thorough
def test_every_locked_package_is_listed_in_its_version(
    document: dict[str, Any], parts: dict[str, dict[str, Any]]
) -> None:
    """The names come from the lines that pip reads."""
    assert {name: part["version"] for name, part in parts.items()} == PINNED
    assert document["metadata"]["component"]["name"] == "muster-gangs"
    (dependencies,) = [
        entry["dependsOn"] for entry in document["dependencies"] if entry["ref"] == "muster-gangs"
    ]
    assert len(dependencies) == len(PINNED)


@pytest.mark.parametrize("name", PINNED)
def test_a_part_has_its_hashes_and_a_permissive_licence(name: str, parts: dict[str, dict[str, Any]]) -> None:
    """A package under another licence needs a decision before it gets into an image."""
    part = parts[name]
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

"""The parts of the real Knative that can be tested without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster import kustomize
from tests.cluster.knative import edits
from tests.cluster.knative.serving import code_of


def test_edits_are_made_in_copies(tmp_path: Path) -> None:
    """The original stays; the go.mod names the copies in the place of the modules."""
    originals = {module: tmp_path / f"cache/{module.rsplit('/', 1)[1]}@v1" for module, _ in edits.EDITS}
    for (module, file), changes in edits.EDITS.items():
        source = originals[module] / file
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text("".join(old for old, _ in changes))
    before = {path: path.read_text() for path in tmp_path.rglob("*.go")}
    pins = tmp_path / "go.mod"
    pins.write_text("module probe\n")
    pins.with_name("go.sum").write_text("")
    modfile = edits.write_modules(tmp_path / "edited", pins, originals)
    assert {path: path.read_text() for path in before} == before
    for (module, file), changes in edits.EDITS.items():
        copy = tmp_path / "edited" / originals[module].name
        assert f"replace {module} => {copy}\n" in modfile.read_text()
        assert (copy / file).read_text() == "".join(new for _, new in changes)


def test_an_edit_that_no_longer_fits_stops_the_build(tmp_path: Path) -> None:
    """A release that changed these lines would listen on all interfaces otherwise."""
    original = tmp_path / "pkg@v2"
    for module, file in edits.EDITS:
        if module == edits.PKG:
            (original / file).parent.mkdir(parents=True, exist_ok=True)
            (original / file).write_text("package other\n")
    pins = tmp_path / "go.mod"
    pins.write_text("")
    pins.with_name("go.sum").write_text("")
    with pytest.raises(ValueError, match="0 times"):
        edits.write_modules(tmp_path / "edited", pins, {edits.PKG: original})


def test_every_function_of_the_overlay_is_run_whatever_its_registry() -> None:
    """By the last part of its image; other Services are left alone."""
    services = kustomize.of_kind(kustomize.load(), "Service")
    for service in services:
        (container,) = service["spec"]["template"]["spec"]["containers"]
        assert code_of(service)
        container["image"] = f"registry.example.com/{container['image']}:1.0"
        assert code_of(service)
        container["image"] = "example.com/other"
        assert code_of(service) == []
    assert len(services) == 7

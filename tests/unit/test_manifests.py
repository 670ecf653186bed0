"""The little kustomize reads what eventing/ uses and refuses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster.kustomize import UnsupportedManifestError, load, of_kind

ONE = "kind: Broker\nmetadata: {name: one}\nspec: {delivery: {retry: 1}}\n"
TWO = f"kind: Trigger\nmetadata: {{name: two}}\n---\n{ONE.replace('one', 'three').replace('1', '3')}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An overlay on a base of two files with three objects."""
    base, overlay = tmp_path / "base", tmp_path / "overlay"
    base.mkdir()
    overlay.mkdir()
    (base / "one.yaml").write_text(ONE)
    (base / "two.yaml").write_text(TWO)
    (base / "kustomization.yaml").write_text("kind: Kustomization\nresources: [one.yaml, two.yaml]\n")
    (overlay / "kustomization.yaml").write_text("resources: [../base]\n")
    return overlay


def test_folders_and_files_are_read_in_order(folder: Path) -> None:
    """Objects come as the resources name them, documents of one file included."""
    assert [manifest["metadata"]["name"] for manifest in load(folder)] == ["one", "two", "three"]
    assert [manifest["metadata"]["name"] for manifest in of_kind(load(folder), "Broker")] == ["one", "three"]


@pytest.mark.parametrize(
    ("target", "retries"),
    [
        pytest.param("{kind: Broker, name: three}", [1, 9], id="a kind and a name"),
        pytest.param("{kind: Broker}", [9, 9], id="all of a kind"),
        pytest.param("{name: one}", [9, 3], id="a name"),
    ],
)
def test_patches_change_their_targets_only(folder: Path, target: str, retries: list[int]) -> None:
    """A JSON 6902 patch with a target."""
    patch = "\n    - {op: replace, path: /spec/delivery/retry, value: 9}"
    (folder / "kustomization.yaml").write_text(
        f"resources: [../base]\npatches:\n- target: {target}\n  patch: |{patch}\n"
    )
    brokers = of_kind(load(folder), "Broker")
    assert [broker["spec"]["delivery"]["retry"] for broker in brokers] == retries


@pytest.mark.parametrize(
    ("line", "field"),
    [
        pytest.param("namePrefix: team-", "namePrefix", id="a transformer"),
        pytest.param("patches: [{path: patch.yaml}]", "patch", id="a patch in a file"),
        pytest.param("patches: [{patch: 'kind: Broker'}]", "patch", id="a strategic merge patch"),
        pytest.param("patches: [{patch: '[]', target: {group: x}}]", "patch", id="another target"),
    ],
)
def test_the_rest_is_refused(folder: Path, line: str, field: str) -> None:
    """Read half, the local wiring would quietly differ from the cluster's."""
    (folder / "kustomization.yaml").write_text(f"resources: [../base]\n{line}\n")
    with pytest.raises(UnsupportedManifestError, match=field):
        load(folder)

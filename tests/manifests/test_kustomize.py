"""Our reader of the YAML and kubectl's build the same objects."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.files import EVENTING
from muster.kustomize import UnsupportedManifestError, load
from muster.objects import yaml_files
from tests.cluster import kubectl
from tests.conftest import Wording

OVERLAYS = sorted(path for path in (EVENTING / "overlays").iterdir() if path.is_dir())
KUSTOMIZATIONS = sorted(
    path for path in EVENTING.rglob("kustomization.yaml") if "\nkind: Component\n" not in path.read_text()
)


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_every_overlay_builds_and_names_nothing_twice(overlay: Path) -> None:
    """An object that two files make would be made by whichever is applied last."""
    names = [_name(manifest) for manifest in load(overlay)]
    assert names
    assert len(names) == len(set(names))


def test_no_file_is_forgotten() -> None:
    """A YAML file that no kustomization names is installed nowhere."""
    named = {path.resolve() for folder in EVENTING.rglob("kustomization.yaml") for path in _resources(folder)}
    files = {
        path.resolve() for path in EVENTING.rglob("*.yaml") if not {"local", "examples"} & set(path.parts)
    }
    assert {path for path in files if path.name != "kustomization.yaml"} <= named


@pytest.mark.parametrize(
    ("kustomization", "named"),
    [
        pytest.param({"namePrefix": "a-"}, "namePrefix", id="a field that is not read here"),
        pytest.param({"patches": [{"patch": "spec: {}"}]}, "patch", id="a strategic merge patch"),
        pytest.param(
            {"patches": [{"patch": "[]", "target": {"labelSelector": "a=b"}}]}, "patch", id="a label selector"
        ),
        pytest.param({"resources": 5}, "resources", id="resources that are a number"),
        pytest.param({"resources": [5]}, r"resources\[0\]", id="a resource that is a number"),
        pytest.param({"resources": ["."]}, "include one another", id="a folder that includes itself"),
        pytest.param({"patches": [5]}, r"patches\[0\]", id="a patch that is a number"),
        pytest.param({"patches": [{"patch": 5}]}, r"patches\[0\].patch", id="a patch that is no text"),
        pytest.param(
            {
                "resources": ["job.yaml"],
                "patches": [{"patch": "[{op: remove, path: /a}]", "target": {"kind": "Job"}}],
            },
            "patches",
            id="a patch of a field that is not there",
        ),
        pytest.param(
            {"resources": ["job.yaml"], "patches": [{"patch": "[{}]", "target": {"kind": "Job"}}]},
            "patches",
            id="an operation without a path",
        ),
        pytest.param(
            {"resources": ["job.yaml"], "patches": [{"patch": "[]", "target": {"kind": "("}}]},
            "patches",
            id="a pattern that is none",
        ),
        pytest.param({"images": [{"name": "a"}]}, r"images\[0\].newName", id="an image without a new name"),
        pytest.param({"resources": ["number.yaml"]}, "spec", id="a spec that is a number"),
        pytest.param({"resources": ["pipe.yaml"]}, "is no file", id="a named pipe"),
    ],
)
def test_unsupported_fields_are_refused(
    tmp_path: Path, kustomization: dict[str, Any], named: str, wording: Wording
) -> None:
    """The local stack and a cluster can never quietly differ."""
    content = {"kind": "Kustomization", "resources": []} | kustomization
    os.mkfifo(tmp_path / "pipe.yaml")
    job = {"kind": "Job", "metadata": {"name": "a" * 60}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    (tmp_path / "number.yaml").write_text(yaml.safe_dump({**job, "spec": 5}))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UnsupportedManifestError, match=named) as refused:
        load(tmp_path)
    wording(str(refused.value).replace(str(tmp_path), "FOLDER"))


@pytest.mark.parametrize("pattern", ["(a+)+", "(?:a|aa)*", "a?" * 60 + "a" * 60, ".*" * 20])
def test_patterns_take_linear_time(tmp_path: Path, pattern: str) -> None:
    """Patterns are those of Go, which kustomize uses."""
    names = ("a" * 60, "a" * 60 + "!")
    objects = [{"kind": "Job", "metadata": {"name": name}} for name in names]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(objects))
    patch = {"patch": '[{"op": "add", "path": "/spec", "value": {}}]', "target": {"name": pattern + "$|b"}}
    content = {"resources": ["jobs.yaml"], "patches": [patch]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    began = time.process_time()
    patched = {manifest["metadata"]["name"] for manifest in load(tmp_path) if "spec" in manifest}
    assert patched >= {names[0]}
    assert time.process_time() - began < 1


@pytest.mark.parametrize(("levels", "entries"), [(12, 1), (8, 9)], ids=["too deep", "too many"])
def test_folders_that_include_too_many_are_refused(tmp_path: Path, levels: int, entries: int) -> None:
    """Ten folders, each of which names the next one ten times, stand for ten billion."""
    for level in range(levels):
        folder = tmp_path / f"level-{level}"
        folder.mkdir()
        below = [f"../level-{level + 1}"] * entries if level + 1 < levels else []
        (folder / "kustomization.yaml").write_text(yaml.safe_dump({"resources": below}))
    with pytest.raises(UnsupportedManifestError, match="more than 1000 in all"):
        load(tmp_path / "level-0")


@pytest.mark.real
@pytest.mark.parametrize(
    "kustomization", KUSTOMIZATIONS, ids=lambda path: str(path.parent.relative_to(EVENTING))
)
def test_kubectl_builds_the_same(kustomization: Path) -> None:
    """What `muster run` is wired by is what `kubectl apply -k` installs."""
    folder = kustomization.parent
    theirs = {
        _name(manifest): manifest for manifest in yaml_files.load_all(kubectl.run("kustomize", str(folder)))
    }
    assert {_name(manifest): manifest for manifest in load(folder)} == theirs


def _resources(kustomization: Path) -> list[Path]:
    content = yaml_files.load(kustomization.read_text())
    return [kustomization.parent / entry for entry in content.get("resources") or []]


def _name(manifest: dict[str, Any]) -> tuple[str, str, str, str]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], metadata.get("namespace", ""), metadata["name"]

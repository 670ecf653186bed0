"""Our reader of the YAML and kubectl's build the same objects."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from muster.kustomize import UnsupportedManifestError, load, step_files
from muster.objects import yaml_files
from tests.cluster import kubectl
from tests.support import cpu

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


IMAGE = {"name": "a", "newName": "b", "newTag": "c"}


def patched(operation: str) -> dict[str, Any]:
    """A kustomization that patches a Job."""
    return {"resources": ["job.yaml"], "patches": [{"patch": f"[{operation}]", "target": {"kind": "Job"}}]}


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
        pytest.param({"resources": ["kind.yaml"]}, "kind", id="a kind that is a list"),
        pytest.param(
            {"resources": ["template.yaml"], "images": [IMAGE]}, "template", id="a template that is a list"
        ),
        pytest.param(
            {"resources": ["containers.yaml"], "images": [IMAGE]},
            r"containers\[0\]",
            id="a container that is a text",
        ),
        pytest.param(patched("{op: remove, path: /kind}"), "kind", id="a patch that removes the kind"),
        pytest.param(
            patched("{op: replace, path: /metadata, value: 3}"), "metadata", id="a patch of the metadata"
        ),
        pytest.param(patched("{op: replace, path: '', value: 2}"), "patches", id="a patch of all"),
        pytest.param(patched("{op: add, path: /metadata/name, value: 1}"), "name", id="a patch of the name"),
        pytest.param(
            patched("{op: add, path: /subjects, value: [1]}"), "subjects", id="a patch of the subjects"
        ),
        pytest.param({"components": ["."]}, "is no Component", id="a kustomization as a component"),
    ],
)
def test_unsupported_fields_are_refused(tmp_path: Path, kustomization: dict[str, Any], named: str) -> None:
    """The local stack and a cluster can never quietly differ."""
    content = {"kind": "Kustomization", "resources": []} | kustomization
    os.mkfifo(tmp_path / "pipe.yaml")
    job = {"kind": "Job", "metadata": {"name": "a" * 60}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    others: dict[str, dict[str, Any]] = {
        "number": {"spec": 5},
        "kind": {"kind": ["Job"]},
        "template": {"spec": {"template": [1]}},
        "containers": {"spec": {"template": {"spec": {"containers": ["a"]}}}},
    }
    for name, fields in others.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({**job, **fields}))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UnsupportedManifestError, match=named):
        load(tmp_path)


@pytest.mark.parametrize("pattern", ["(a+)+", "(?:a|aa)*", "a?" * 60 + "a" * 60, ".*" * 20])
def test_patterns_take_linear_time(tmp_path: Path, pattern: str) -> None:
    """Patterns are those of Go, which kustomize uses."""
    names = ("a" * 60, "a" * 60 + "!")
    objects = [{"kind": "Job", "metadata": {"name": name}} for name in names]
    (tmp_path / "jobs.yaml").write_text(yaml.safe_dump_all(objects))
    patch = {"patch": '[{"op": "add", "path": "/spec", "value": {}}]', "target": {"name": pattern + "$|b"}}
    content = {"resources": ["jobs.yaml"], "patches": [patch]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(content))
    with cpu.at_most(1):
        patched = {manifest["metadata"]["name"] for manifest in load(tmp_path) if "spec" in manifest}
        assert patched >= {names[0]}


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


@pytest.mark.parametrize(
    ("folders", "size", "named"),
    [
        pytest.param(1, 300_000, "folder-0/kustomization.yaml: has more than 262144 bytes", id="a long one"),
        pytest.param(30, 200_000, "more than 50000 steps of work", id="many of a length that is read"),
    ],
)
def test_long_kustomizations_are_refused(folders: int, size: int, named: str, tmp_path: Path) -> None:
    """Empty lists take twenty times as much memory as their text: three folders of 4 MB took 1.5 GiB."""
    entries = [f"folder-{number}" for number in range(folders)]
    for entry in entries:
        (tmp_path / entry).mkdir()
        (tmp_path / entry / "kustomization.yaml").write_text("resources: [] #" + "a" * size)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": entries}))
    with pytest.raises(UnsupportedManifestError, match=named):
        load(tmp_path)


@pytest.mark.parametrize("entry", ["/proc/kmsg", "../secret.yaml", "link.yaml"])
def test_files_outside_of_the_folder_are_not_read(entry: str, tmp_path: Path) -> None:
    """Reading /proc/kmsg takes for ever, and an error quotes of a file; kubectl refuses them too."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text("{kind: A, metadata: {name: a}}")
    (folder / "link.yaml").symlink_to("/proc/kmsg")
    (folder / "kustomization.yaml").write_text(f"resources: [{entry}]")
    with pytest.raises(UnsupportedManifestError, match=f"{entry}: is not in .* or below"):
        load(folder)


def test_a_kustomization_that_is_a_link_to_another_place_is_not_read(tmp_path: Path) -> None:
    """A folder may come from an archive of somebody else."""
    (tmp_path / "kustomization.yaml").symlink_to("/proc/kmsg")
    with pytest.raises(UnsupportedManifestError, match=r"kustomization\.yaml: is not in .* or below"):
        load(tmp_path)


@pytest.mark.thorough
def test_documents_of_long_files_are_not_kept(tmp_path: Path) -> None:
    """Only those of files as short as in eventing/, which tests load again and again."""
    entries = [f"{number}.yaml" for number in range(10)]
    for entry in entries:
        job = {"kind": "Job", "metadata": {"name": entry}, "spec": {"text": "a" * 200_000}}
        (tmp_path / entry).write_text(yaml.safe_dump(job))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": entries}))
    tracemalloc.start()
    try:
        load(tmp_path)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000


@pytest.mark.thorough
def test_operations_that_double_a_field_are_refused(tmp_path: Path) -> None:
    """Twenty-six of them, in a file of one kilobyte, would make gigabytes of a hundred bytes."""
    doubled = ",".join(f"{{op: copy, from: /spec, path: /spec/a{number}}}" for number in range(26))
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}, spec: {text: " + "a" * 100 + "}}")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(patched(doubled)))
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedManifestError, match="characters"):
            load(tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50_000_000


def test_nothing_is_copied_from_behind_a_list(tmp_path: Path) -> None:
    """`-` is the place behind the last entry."""
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}, spec: {a: []}}")
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump(patched("{op: copy, from: /spec/a/-, path: /b}"))
    )
    with pytest.raises(UnsupportedManifestError, match="from /spec/a/-"):
        load(tmp_path)


TEST = "{op: test, path: /kind, value: Job}"
COPY = "{op: copy, from: /spec, path: /copy}"


@pytest.mark.thorough
def test_an_object_is_copied_once_for_all_operations(tmp_path: Path) -> None:
    """Two thousand operations on an object of 90 KB."""
    spec = "{a: [" + "[]," * 30_000 + "]}"
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}, spec: " + spec + "}")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(patched(",".join([TEST] * 2000))))
    with cpu.at_most(8):
        assert len(load(tmp_path)[0]["spec"]["a"]) == 30_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(patched(",".join([TEST] * 200)), id="operations on many objects"),
        pytest.param({"patches": patched("")["patches"] * 200}, id="patches of many objects"),
        pytest.param(
            {"resources": [], "patches": patched(TEST + " " * 60_000)["patches"] * 100},
            id="a long patch that is named often",
        ),
        pytest.param({"images": [IMAGE] * 200}, id="images of many objects"),
        pytest.param({"resources": ["job.yaml"] * 500}, id="a file that is named often"),
    ],
)
def test_work_for_each_of_many_objects_is_limited(fields: dict[str, Any], tmp_path: Path) -> None:
    """An overlay of some 100 KB could ask for millions of steps."""
    (tmp_path / "job.yaml").write_text("---\n{kind: Job, metadata: {name: a}}\n" * 400)
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["job.yaml"], **fields}))
    with cpu.at_most(8), pytest.raises(UnsupportedManifestError, match="more than 50000 steps of work"):
        load(tmp_path)


def test_copies_that_replace_one_another_count_each(tmp_path: Path) -> None:
    """The object stays small, but a copy of a megabyte takes a second."""
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}, spec: {a: " + "a" * 200_000 + "}}")
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(patched(",".join([COPY] * 12))))
    with pytest.raises(UnsupportedManifestError, match="characters"):
        load(tmp_path)


@pytest.mark.parametrize("number_of_operations", [2, 12])
def test_an_object_that_operations_nest_deeply_is_refused(number_of_operations: int, tmp_path: Path) -> None:
    """Each adds ninety levels."""
    value = "{a: " * 90 + "1" + "}" * 90
    operations = [
        f"{{op: add, path: /metadata{'/a' * (90 * number + 1)}, value: {value}}}"
        for number in range(number_of_operations)
    ]
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}}")
    nested = patched(",".join(operations))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(nested))
    with pytest.raises(UnsupportedManifestError, match="nested"):
        load(tmp_path)


def test_a_patch_changes_one_place_of_an_alias(tmp_path: Path) -> None:
    """An alias is written out, as by kubectl."""
    (tmp_path / "job.yaml").write_text("{kind: Job, metadata: {name: a}, spec: {a: &a {b: 1}, c: *a}}")
    (tmp_path / "kustomization.yaml").write_text(
        yaml.safe_dump(patched("{op: replace, path: /spec/a/b, value: 2}"))
    )
    assert load(tmp_path)[0]["spec"] == {"a": {"b": 2}, "c": {"b": 1}}


def _written(folder: Path, kind: str, **fields: Any) -> Path:
    """A folder with a kustomization, and with a Job that has the name of the folder."""
    folder.mkdir()
    version = "v1beta1" if kind == "Kustomization" else "v1alpha1"
    content = {
        "apiVersion": f"kustomize.config.k8s.io/{version}",
        "kind": kind,
        "resources": ["job.yaml"],
        **fields,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": folder.name}, "spec": {}}
    (folder / "job.yaml").write_text(yaml.safe_dump(job))
    return folder


@pytest.fixture(name="nested")
def _nested(tmp_path: Path) -> Path:
    """A kustomization with a component that has a component; each says which objects it has seen."""

    def saying(name: str) -> list[dict[str, Any]]:
        operation = json.dumps([{"op": "add", "path": f"/spec/{name}", "value": "seen"}])
        return [{"patch": operation, "target": {"kind": "Job"}}]

    _written(tmp_path / "inner", "Component", patches=saying("inner"))
    _written(tmp_path / "outer", "Component", components=["../inner"], patches=saying("outer"))
    return _written(tmp_path / "top", "Kustomization", components=["../outer"], patches=saying("top"))


NESTED = {
    "top": {"inner": "seen", "outer": "seen", "top": "seen"},
    "outer": {"inner": "seen", "outer": "seen", "top": "seen"},
    "inner": {"inner": "seen", "outer": "seen", "top": "seen"},
}


def test_a_component_of_a_component_changes_what_stands_before_it(nested: Path) -> None:
    """As `kubectl kustomize` does; see below."""
    built = load(nested)
    assert {manifest["metadata"]["name"]: manifest["spec"] for manifest in built} == NESTED


@pytest.mark.real
def test_kubectl_builds_the_same_of_nested_components(nested: Path) -> None:
    """The command in the path, as of any version."""
    theirs = yaml_files.load_all(kubectl.run("kustomize", str(nested)))
    assert {manifest["metadata"]["name"]: manifest["spec"] for manifest in theirs} == NESTED


def test_components_that_include_one_another_come_to_an_end(nested: Path) -> None:
    """Refused as a whole, and each folder is looked at once for steps."""
    _written(nested.parent / "other", "Component", components=["../inner", "../other"])
    folder = _written(nested.parent / "ring", "Kustomization", components=["../other"])
    with pytest.raises(UnsupportedManifestError, match="include one another"):
        load(folder)
    assert step_files(folder) == {}


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

"""The Helm chart installs what the overlays install, whichever of them its values stand for."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from muster.kustomize import Manifest, load
from muster.objects import yaml_files
from release.chart import chart
from release.manifests import TO_COPY, manifest_text, overlays
from release.templates import TemplateError, templates
from tests.cluster.helm import client as helm
from tests.manifests.chart_templates import FUNCTIONS, Installation

DIGEST = f"sha256:{'a' * 64}"
IMAGE = f"registry.example.com/team/muster@{DIGEST}"
FILES = chart(EVENTING, "0.1.0", IMAGE)
STEPS = [name for name in FUNCTIONS if name != "dead-letter"]
EXAMPLE: dict[str, Any] = {
    "image": {"repository": "registry.example.com/muster/muster", "tag": "1.0"},
    "delivery": {"retry": 8, "backoffDelay": "PT0.5S"},
    # Its triggers keep a delivery of their own.
    "steps": {
        name: {
            "enabled": name != "emit-conditions",
            "delivery": {"retry": 3 if name == "patch-pods" else 5, "backoffDelay": "PT0.2S"},
        }
        for name in STEPS
    },
}
OVERLAYS: dict[str, dict[str, Any]] = {
    "cluster": {},
    "composite-pod-groups": {"compositePodGroups": True},
    "example": EXAMPLE,
    "kubernetes-1.36": {"kubernetes": "1.36"},
    "native-jobs": {"nativeJobs": True},
    "one-namespace": {"namespaces": "Own"},
    "one-service": {"oneService": True},
}
COMPONENTS: dict[str, dict[str, Any]] = {
    "event-policy": {"eventPolicy": True},
    "labelled-namespaces": {"namespaces": "Labelled"},
    "one-service": {"oneService": True},
    "suspend-after-timeout": {"suspendAfterTimeout": True},
}
TEMPLATE = ("template", "muster", "--kube-version", "1.37.1")
"""A helm that is built without its Makefile takes the cluster for 1.20."""
NAMESPACES = {"one-namespace": "team-a"}
"""Of the releases that are not in muster-system."""


def test_every_overlay_and_component_has_its_values() -> None:
    """The chart installs all of them but the component that changes the Trainer's CRDs."""
    assert set(OVERLAYS) == {path.name for path in (EVENTING / "overlays").iterdir() if path.is_dir()}
    assert set(COMPONENTS) == {path.name for path in (EVENTING / "components").iterdir()} - {
        "runtime-policy-crd"
    }


@pytest.mark.thorough
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_chart_installs_an_overlay(overlay: str) -> None:
    """The same objects, field by field."""
    assert _rendered(OVERLAYS[overlay], _namespace(overlay)) == _overlay(overlay)


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_chart_adds_a_component(component: str, tmp_path: Path) -> None:
    """To the overlay cluster."""
    assert _rendered(COMPONENTS[component], "muster-system") == _with_component(component, tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_helm_renders_an_overlay(overlay: str, chart_folder: Path, tmp_path: Path) -> None:
    """With the values, schema and helpers of the chart."""
    assert _helm(chart_folder, OVERLAYS[overlay], _namespace(overlay), tmp_path) == _overlay(overlay)


@pytest.mark.real
@pytest.mark.parametrize("component", COMPONENTS)
def test_helm_renders_a_component(component: str, chart_folder: Path, tmp_path: Path) -> None:
    """With the values, schema and helpers of the chart."""
    made = _helm(chart_folder, COMPONENTS[component], "muster-system", tmp_path)
    assert made == _with_component(component, tmp_path)


VALUES: dict[str, dict[str, Any]] = {
    "another namespace": {
        "namespaces": "Own",
        "oneService": True,
        "suspendAfterTimeout": True,
        "eventPolicy": True,
    },
    "a dead letter sink of one's own": {
        "delivery": {"retry": 1, "deadLetterSink": {"uri": "http://sink.team-b"}}
    },
    "settings": {
        "env": {"MUSTER_LOG_LEVEL": "DEBUG", "MUSTER_THREADS": 8},
        "steps": {"patch-pods": {"env": {"MUSTER_THREADS": 2}, "resources": {"limits": {"memory": "1Gi"}}}},
        "sweep": {"schedule": "*/5 * * * *"},
    },
    "shared": {"oneService": True, "sharedResources": {"limits": {"memory": "1Gi"}}, "env": {"A": "b"}},
    "its own policies and gateways": {
        "admissionPolicies": False,
        "nativeJobs": True,
        "networkPolicy": {"namespaces": ["knative-eventing", "gateway"]},
    },
    "no network policy, no patch-pods": {
        "networkPolicy": {"enabled": False},
        "steps": {"patch-pods": {"enabled": False}},
    },
}


@pytest.mark.parametrize("namespace", ["123", "null", "on", "0x1f"])
def test_a_namespace_stays_a_text(namespace: str) -> None:
    """YAML reads these names as something else where they stand without quotes."""
    for values in (OVERLAYS["cluster"], VALUES["another namespace"]):
        made = _rendered(values, namespace)
        assert {manifest["metadata"].get("namespace", namespace) for manifest in made.values()} == {namespace}
        assert set(_at("namespace", list(made.values()))) == {namespace}


def _at(field: str, value: Any) -> Iterator[Any]:
    """Every value of a field that is no struct."""
    if isinstance(value, list):
        for entry in value:
            yield from _at(field, entry)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name == field and not isinstance(inner, dict):
                yield inner
            yield from _at(field, inner)


@pytest.mark.real
@pytest.mark.parametrize("values", VALUES.values(), ids=list(VALUES))
def test_helm_and_these_tests_read_values_alike(
    values: dict[str, Any], chart_folder: Path, tmp_path: Path
) -> None:
    """So that the comparison without helm says what helm installs."""
    assert _helm(chart_folder, values, "team-b", tmp_path) == _rendered(values, "team-b")


@pytest.mark.real
@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("namespaces=Some", "namespaces"),
        ("kubernetes=1.35", "kubernetes"),
        ("steps.no-such.enabled=true", "no-such"),
        ("delivery.retries=3", "retries"),
        ("image.digest=sha256:12", "digest"),
        ("image.repository=a: b", "repository"),
        ("image.tag=1 2", "tag"),
        ("sweep.schedule=hourly", "schedule"),
    ],
)
def test_helm_refuses_values_that_mean_nothing(setting: str, named: str, chart_folder: Path) -> None:
    """Before anything is installed, with the path of the value."""
    with pytest.raises(helm.HelmFailed) as refused:
        helm.run(*TEMPLATE, str(chart_folder), "--set-string", setting)
    _, _, error = str(refused.value).partition("Error: ")
    assert "schema" in error
    assert named in error


@pytest.mark.thorough
@pytest.mark.parametrize("overlay", overlays(EVENTING))
def test_a_manifest_has_the_objects_of_its_overlay(overlay: str) -> None:
    """With the image by its digest, and texts that a person can read."""
    text = manifest_text(EVENTING / "overlays" / overlay, "0.1.0", IMAGE)
    expected = [_with_image(manifest, IMAGE) for manifest in load(EVENTING / "overlays" / overlay)]
    assert yaml_files.load_all(text) == expected
    assert "muster/muster\n" not in text
    assert "expression: |-\n" in text


def test_overlays_to_copy_get_no_manifest() -> None:
    """They name a namespace or a registry that does not exist."""
    assert {*overlays(EVENTING), *TO_COPY} == set(OVERLAYS)


def test_a_line_that_no_value_replaces_is_an_error(tmp_path: Path) -> None:
    """An edit of eventing/ cannot silently fix a value, or install the image that no registry has."""
    for name, old, new in (
        ("base/functions/patch-pods.yaml", "          limits: {memory: 448Mi}\n", ""),
        ("triggers/patch-pods.yaml", "name: patch-pods}", "name: Other}"),
        ("components/one-service/account.yaml", "muster-system", "muster/muster"),
    ):
        edited = tmp_path / name.replace("/", "-")
        _copy(EVENTING, edited)
        path = edited / name
        path.write_text(path.read_text().replace(old, new))
        with pytest.raises(TemplateError, match=path.name):
            templates(edited)


@pytest.fixture(name="chart_folder", scope="module")
def _chart_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chart") / "muster"
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def _copy(folder: Path, to: Path) -> None:
    for path in folder.rglob("*.yaml"):
        copied = to / path.relative_to(folder)
        copied.parent.mkdir(parents=True, exist_ok=True)
        copied.write_bytes(path.read_bytes())


def _namespace(overlay: str) -> str:
    return NAMESPACES.get(overlay, "muster-system")


def _rendered(values: Mapping[str, Any], namespace: str) -> dict[str, Manifest]:
    merged = _merged(yaml_files.load(FILES["values.yaml"]), values)
    installation = Installation(merged, namespace)
    made = [
        manifest
        for name, text in FILES.items()
        if name.startswith("templates/") and name.endswith(".yaml")
        for manifest in installation.render(text.decode())
    ]
    return _by_name(made)


def _helm(folder: Path, values: Mapping[str, Any], namespace: str, scratch: Path) -> dict[str, Manifest]:
    path = scratch / "values.yaml"
    path.write_text(yaml.safe_dump(dict(values)))
    made = helm.run(*TEMPLATE, str(folder), "--namespace", namespace, "--values", str(path))
    return _by_name(manifest for manifest in yaml_files.load_all(made) if manifest)


def _overlay(name: str) -> dict[str, Manifest]:
    return _by_name(_with_image(manifest, IMAGE) for manifest in load(EVENTING / "overlays" / name))


def _with_component(component: str, scratch: Path) -> dict[str, Manifest]:
    # kustomize takes relative paths; muster.kustomize both.
    content = {
        "resources": [str(EVENTING / "overlays/cluster")],
        "components": [str(EVENTING / "components" / component)],
    }
    (scratch / "kustomization.yaml").write_text(yaml.safe_dump({"kind": "Kustomization", **content}))
    return _by_name(_with_image(manifest, IMAGE) for manifest in load(scratch))


def _with_image(manifest: Manifest, image: str) -> Manifest:
    made = copy.deepcopy(manifest)
    if made["apiVersion"] == "serving.knative.dev/v1":
        (container,) = made["spec"]["template"]["spec"]["containers"]
        container["image"] = image if container["image"] == "muster/muster" else container["image"]
    return made


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(below[name], value)
        if isinstance(value, dict) and isinstance(below.get(name), dict)
        else value
        for name, value in above.items()
    }
    return {**below, **both}


def _by_name(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """By kind, namespace and name; helm makes the namespace of a release by itself."""
    named: dict[str, Manifest] = {}
    for manifest in manifests:
        if manifest["kind"] != "Namespace":
            key = "/".join(
                (manifest["kind"], manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"])
            )
            assert key not in named
            named[key] = manifest
    return named

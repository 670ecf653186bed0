"""eventing/built has what kubectl builds of the overlays, and components change what they say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.simulator.overlays import Manifest, built, of_kind
from tests.cluster import kubectl
from tests.manifests.built import OVERLAYS, build
from tests.support.overlays import objects_of


def test_every_overlay_is_built() -> None:
    """One file each."""
    assert [path.stem for path in sorted((EVENTING / "built").iterdir())] == OVERLAYS


@pytest.mark.real
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_built_file_is_what_kubectl_builds(overlay: str) -> None:
    """`make manifests` writes them anew."""
    assert built(overlay).read_text() == build(overlay)


@pytest.mark.real
def test_sources_watch_labelled_namespaces_with_the_component(tmp_path: Path) -> None:
    """Those of Jobs that become gangs; nothing else changes."""
    objects, whole = _with("labelled-namespaces", tmp_path), objects_of("cluster")
    selectors = [source["spec"].pop("namespaceSelector") for source in of_kind(objects, "ApiServerSource")]
    assert selectors == [{"matchLabels": {"muster.dev/gang-jobs": "enabled"}}] * 4
    unchanged = [manifest for manifest in whole if manifest["kind"] != "ApiServerSource"]
    assert [manifest for manifest in objects if manifest["kind"] != "ApiServerSource"] == unchanged


@pytest.mark.real
def test_only_musters_namespace_sends_to_the_broker_with_the_component(tmp_path: Path) -> None:
    """The EventPolicy is for the broker that the sources feed."""
    objects = _with("event-policy", tmp_path)
    (policy,), (broker,) = of_kind(objects, "EventPolicy"), of_kind(objects, "Broker")
    assert policy["metadata"]["namespace"] == broker["metadata"]["namespace"] == "muster-system"
    assert [to["ref"]["name"] for to in policy["spec"]["to"]] == [broker["metadata"]["name"]]
    assert policy["spec"]["from"] == [{"sub": "system:serviceaccount:muster-system:*"}]


@pytest.mark.real
def test_the_component_to_suspend_goes_with_one_service(tmp_path: Path) -> None:
    """Named before it, its role is that of the shared account."""
    bindings = of_kind(_with("suspend-after-timeout", tmp_path, "one-service"), "ClusterRoleBinding")
    assert "muster-suspend-after-timeout" in {binding["metadata"]["name"] for binding in bindings}
    assert {one["name"] for binding in bindings for one in binding["subjects"]} == {"muster", "muster-source"}


def _with(component: str, folder: Path, *more: str) -> list[Manifest]:
    """Return what kubectl builds of the overlay cluster with components."""
    names = [f"components/{name}" for name in (component, *more)]
    overlay, *components = [
        os.path.relpath((EVENTING / name).resolve(), folder.resolve())
        for name in ("overlays/cluster", *names)
    ]
    kustomization = {"resources": [overlay], "components": components}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return list(yaml.safe_load_all(kubectl.run("kustomize", str(folder))))

"""Objects of manifest files in an embedded API server: their order, and errors that name the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.simulator.apiserver import ApiServer
from muster.simulator.manifests import ManifestError, load
from tests.contract.bodies import widget, widget_definition

POLICY = """\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: named}
spec: {policyName: named, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: named}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: "object.metadata.name.startsWith('good')"
    message: the name must begin with good
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


@pytest.fixture(name="server")
def _server() -> ApiServer:
    return ApiServer()


def _names(server: ApiServer, kind: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in server.snapshot() if obj["kind"] == kind]


def test_definitions_and_policies_come_first(server: ApiServer, tmp_path: Path) -> None:
    """Whatever the order of the files, a custom resource finds its definition, and policies are in effect."""
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(widget("one", size=1)))
    (tmp_path / "b.json").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.yml").write_text(yaml.safe_dump(widget_definition()))
    (tmp_path / "kustomization.yaml").write_text("kind: Kustomization\nresources: [a.yaml]\n")
    assert load(server, [tmp_path]) == 2
    assert _names(server, "Widget") == ["one"]
    (tmp_path / "d.yaml").write_text(CONFIG_MAP.replace("NAME", "bad") + "---\n" + POLICY)
    with pytest.raises(ManifestError, match=r"d\.yaml: .*the name must begin with good"):
        load(server, [tmp_path / "d.yaml"])


def test_exported_objects_are_taken(server: ApiServer, tmp_path: Path) -> None:
    """The items of a List, with what a server set, keep their status; missing namespaces are made."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "team",
            "uid": "old",
            "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
    }
    path = tmp_path / "list.yaml"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [pod]}))
    assert load(server, [path]) == 1
    assert load(server, [path]) == 1, "a second time it changes nothing"
    (stored,) = (obj for obj in server.snapshot() if obj["kind"] == "Pod")
    assert stored["metadata"]["uid"] != "old"
    assert stored["status"]["phase"] == "Running"
    assert "team" in _names(server, "Namespace")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("apiVersion: v1\nkind: [a\n", ".*line 3"),
        ("apiVersion: v1\nkind: ConfigMap\n", ".*without .*metadata.name"),
        ("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", "Deployment of apps/v1 is not"),
        (CONFIG_MAP + "---\n" + CONFIG_MAP + "dota: {}\n", "ConfigMap name: .*unknown field"),
    ],
)
def test_errors_name_the_file(server: ApiServer, tmp_path: Path, text: str, where: str) -> None:
    """One line each, whatever is wrong."""
    path = tmp_path / "broken.yaml"
    path.write_text(text.replace("NAME", "name"))
    with pytest.raises(ManifestError, match=rf"broken\.yaml: {where}") as caught:
        load(server, [path])
    assert "\n" not in str(caught.value)

"""The Trainer's runtime CRDs, patched, keep a policy of Muster's; unpatched they drop it."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from muster.objects import yaml_files
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.cluster import cluster, kubectl
from tests.cluster.api import JSON_PATCH, MERGE_PATCH, KubernetesApi
from tests.schemas import policy as policy_schema

KINDS = ("trainingruntimes", "clustertrainingruntimes")
CLAIM = {"name": "gpu", "resourceClaimName": "shared"}
FULL: dict[str, Any] = {
    "workload": {
        "groups": [
            {
                "name": "root",
                "schedulingPolicy": {"gang": {"minGroupCount": 1}},
                "schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/zone"}]},
                "disruptionMode": {"all": {}},
                "preemptionPolicy": "Never",
                "groups": [
                    {"name": "two", "groups": [{"name": "three", "groups": [{"name": "four", "size": 4}]}]},
                    {"name": "node", "replicatedJobs": ["node"], "resourceClaims": [CLAIM]},
                ],
            }
        ],
        "onScale": "Flag",
        "onFailure": "Hold",
    }
}


def a_runtime(policy: dict[str, Any], name: str = "mine") -> dict[str, Any]:
    """A runtime of one node."""
    container = {"name": "node", "image": "example.com/train"}
    pods = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"name": "node", "template": {"spec": {"template": pods}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"podGroupPolicy": policy, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def a_tree_of(levels: int) -> dict[str, Any]:
    """Groups inside one another."""
    return {"groups": [{"name": f"level-{levels}", **a_tree_of(levels - 1)}]} if levels else {}


def definitions() -> list[dict[str, Any]]:
    """The Trainer's runtime CRDs as released."""
    released = [obj for obj in resource_definitions() if obj["metadata"]["name"].split(".")[0] in KINDS]
    assert len(released) == len(KINDS)
    return copy.deepcopy(released)


@pytest.fixture
def embedded() -> Iterator[KubernetesApi]:
    """The embedded server with the runtime CRDs as released."""
    with ApiServer() as server:
        server.load(definitions())
        yield KubernetesApi(server.url)


def patch(api: KubernetesApi) -> None:
    """Patch both CRDs as `kubectl patch --type json` does."""
    for kind in KINDS:
        api.must("PATCH", f"{CRDS}/{kind}.trainer.kubeflow.org", policy_schema.crd_patch(), JSON_PATCH)


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


def kept(api: KubernetesApi, policy: dict[str, Any], name: str = "mine") -> Any:
    """What the API server stores of a policy in a runtime."""
    body = api.must("POST", RUNTIMES, a_runtime(policy, name), query={"fieldValidation": "Ignore"})
    return body["spec"]["podGroupPolicy"]


@pytest.mark.parametrize("policy", [FULL, {"kaiScheduler": {"queue": "team-a"}}], ids=["workload", "kai"])
def test_patched_crds_keep_policies_that_released_ones_drop(
    embedded: KubernetesApi, policy: dict[str, Any]
) -> None:
    """The same policy, before and after the patch, every field of it."""
    assert kept(embedded, policy, "before") == {}
    patch(embedded)
    assert kept(embedded, policy, "after") == policy
    claimless = {"groups": [{"name": "a", "resourceClaims": [{"name": "gpu"}]}]}
    answer = embedded.request("POST", RUNTIMES, a_runtime({"workload": claimless}))
    assert next(field for _, field in answer.causes).endswith("groups[0].resourceClaims[0]")


@pytest.mark.real
def test_the_real_api_server_takes_the_patch_and_keeps_the_policy(
    tmp_path: Path, bare_137: cluster.RealCluster
) -> None:
    """Rules of structural schemas and pruning are the real server's; the CRDs are built by kubectl."""
    api = bare_137.api
    assert kept(api, FULL, "before") == {}
    for definition in built_by_kubectl(tmp_path):
        api.must("PATCH", f"{CRDS}/{definition['metadata']['name']}", definition, MERGE_PATCH)
    assert kept(api, FULL, "after") == FULL
    answer = api.request("POST", RUNTIMES, a_runtime({"workload": a_tree_of(5)}))
    assert (answer.status, "must have at most 0 items" in answer.message) == (422, True), answer.message
    for kind in KINDS:
        undo = [{"op": "remove", "path": operation["path"]} for operation in policy_schema.crd_patch()]
        api.must("PATCH", f"{CRDS}/{kind}.trainer.kubeflow.org", undo, JSON_PATCH)
    for name in ("before", "after"):
        api.must("DELETE", f"{RUNTIMES}/{name}")


def built_by_kubectl(folder: Path) -> list[dict[str, Any]]:
    """The released CRDs with the component laid over them."""
    (folder / "crds.yaml").write_text(yaml.safe_dump_all(definitions()))
    shutil.copytree(policy_schema.CRD_PATCH.parent, folder / "component")
    kustomization = {"resources": ["crds.yaml"], "components": ["component"]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    built = kubectl.run("kustomize", str(folder))
    return [manifest for manifest in yaml_files.load_all(built) if manifest]


def test_the_component_patches_as_kubectl_would() -> None:
    """Both CRDs are named, and the operations apply to what is released."""
    kustomization = yaml_files.load((policy_schema.CRD_PATCH.parent / "kustomization.yaml").read_text())
    named = {target["target"]["name"] for target in kustomization["patches"]}
    crds = {definition["metadata"]["name"]: definition for definition in definitions()}
    assert named == set(crds)
    operations = json.loads(policy_schema.CRD_PATCH.read_text())
    for definition in crds.values():
        assert jsonpatch.apply_patch(definition, operations) != definition

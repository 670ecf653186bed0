"""The policies of the service accounts on the real API servers: no type warnings, costs within limits."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from muster.policy.limits import REPLICATED_JOBS
from tests.cluster import cluster, manifests
from tests.cluster.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.cluster.cluster import RealCluster
from tests.cluster.control_plane import Release
from tests.cluster.processes import until
from tests.contract.accounts import ONE_SERVICE, OUR_WORKLOAD, POLICIES, account, applied, musters
from tests.contract.bodies import composite, core, gated, groups, job, jobs, pod_spec, template, workload
from tests.contract.case import Conversation
from tests.contract.real import of_service_account

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

GATE = "muster.dev/pod-group"
GATED = {"muster.dev/gated": "true"}
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainingruntimes"


@pytest.fixture(name="conversation")
def _conversation(real_server: RealCluster) -> Conversation:
    """A namespace for objects of unusual size."""
    namespace = "unusual-sizes"
    manifests.apply(
        real_server.api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
    )
    return Conversation(real_server.api, namespace, token_of=of_service_account(real_server))


@pytest.mark.parametrize("release", ["1.37", "1.36"])
def test_the_api_server_has_no_warnings(release: str) -> None:
    """A controller checks the types of the expressions, and writes the result in a policy's status."""
    options = cluster.ClusterOptions(Release(release), controllers=("controller-manager",))
    with cluster.running(options) as managed:
        shared = [one for one in ONE_SERVICE if one["metadata"]["name"] == "muster-events"]
        manifests.apply(managed.api, [*POLICIES, *shared])
        policies = [one for one in (*POLICIES, *shared) if one["kind"] == "ValidatingAdmissionPolicy"]

        def checked() -> bool:
            stored = [managed.api.must("GET", manifests.path(one)) for one in policies]
            return all("typeChecking" in (one.get("status") or {}) for one in stored)

        assert until(checked, 60)
        checks = [managed.api.must("GET", manifests.path(one))["status"]["typeChecking"] for one in policies]
    assert checks == [{}] * len(policies)


def test_a_large_pod(conversation: Conversation) -> None:
    """A pod of 400 kB with as many gates as one can have is compared within the limit on costs."""
    namespace = conversation.namespace
    others = [f"example.com/gate-{number}" for number in range(100)]
    large = gated("large", GATE, *others)
    large["metadata"]["labels"] = {f"label-{number}": "x" * 60 for number in range(500)} | GATED
    environment = [{"name": f"NAME_{number}", "value": "x" * 100} for number in range(3000)]
    large["spec"]["containers"][0]["env"] = environment
    path = core(namespace, "pods", "large")
    conversation.api.request("DELETE", path)
    conversation.api.must("POST", core(namespace, "pods"), large)
    misuse = {"metadata": {"labels": {"label-499": None}}}
    function = account(conversation, "patch-pods", "PATCH", path, misuse, MERGE_PATCH)
    remove = {
        "metadata": {"labels": {"muster.dev/gated": None}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
    left = function.api.must("PATCH", path, remove, STRATEGIC_PATCH)
    assert len(left["spec"]["schedulingGates"]) == len(others)


@pytest.mark.parametrize("manager", ["theirs", "muster-patch-pods"])
def test_a_pod_with_a_megabyte_of_managed_fields(conversation: Conversation, manager: str) -> None:
    """The bytes of others, or written by a user as the step's, are counted within the limit on costs."""
    path = core(conversation.namespace, "pods", "managed")
    conversation.api.request("DELETE", path)
    conversation.api.must("POST", core(conversation.namespace, "pods"), gated("managed", GATE))
    theirs = [_a_megabyte("v1") | {"manager": manager}]
    conversation.api.must("PATCH", path, {"metadata": {"managedFields": theirs}}, MERGE_PATCH)
    misuse = {"metadata": {"labels": {"a": "b"}}}
    function = account(conversation, "patch-pods", "PATCH", path, misuse, MERGE_PATCH)
    remove = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    left = function.api.must("PATCH", path, remove, STRATEGIC_PATCH)
    assert "schedulingGates" not in left["spec"]


def _a_megabyte(api_version: str) -> dict[str, Any]:
    """An entry of managedFields with 50,000 fields."""
    fields: dict[str, Any] = {"f:status": {f"f:field-{number:06}": {} for number in range(50_000)}}
    return applied(api_version, "") | {"fieldsV1": fields}


def test_a_large_runtime(conversation: Conversation) -> None:
    """A runtime of as many replicatedJobs as are labelled: each is looked up by name in all of them."""
    path = RUNTIMES.format(conversation.namespace)
    body: dict[str, Any] = {"metadata": {"labels": {"team": "a"}}, "spec": pod_spec(restartPolicy="Never")}
    names = [f"job-{number:03}-{'x' * 55}" for number in range(REPLICATED_JOBS)]
    entries = [{"name": name, "template": {"spec": {"template": body}}} for name in names]
    large = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "large", "annotations": {"muster.dev/pod-group-policy": "workload: {}"}},
        "spec": {"template": {"spec": {"replicatedJobs": entries}}},
    }
    conversation.api.request("DELETE", f"{path}/large")
    stored = conversation.api.must("POST", path, large)
    misuse, labelled = deepcopy(stored), deepcopy(stored)
    misuse["spec"]["template"]["spec"]["replicatedJobs"].reverse()
    for entry in labelled["spec"]["template"]["spec"]["replicatedJobs"]:
        entry["template"]["spec"]["template"]["metadata"]["labels"]["muster.dev/group"] = entry["name"]
    function = account(conversation, "mark-runtime", "PUT", f"{path}/large", misuse)
    function.must("PUT", f"{path}/large", labelled)


@pytest.mark.parametrize("real_server", ["1.37"], indirect=True)
def test_a_large_workload(conversation: Conversation) -> None:
    """That of a JobSet of 128 replicatedJobs with leaders, in a tree: managedFields of more than 64 KiB."""
    path = groups(conversation.namespace, "workloads")
    conversation.api.request("DELETE", jobs(conversation.namespace, "owner"))
    conversation.api.request("DELETE", f"{path}/{OUR_WORKLOAD}")
    owner = conversation.api.must("POST", jobs(conversation.namespace), job("owner"))
    one_by_one = {"disruptionMode": {"single": {}}, "preemptionPolicy": "PreemptLowerPriority"}
    leaves = [template(f"leaf-{number:03}-{'x' * 36}", **one_by_one) for number in range(256)]
    inner = [
        composite(f"inner-{start:03}-{'x' * 36}", *leaves[start : start + 8])
        for start in range(0, len(leaves), 8)
    ]
    roots = [
        composite(f"root-{start:03}-{'x' * 36}", compositePodGroupTemplates=inner[start : start + 8])
        for start in range(0, len(inner), 8)
    ]
    large = musters(workload("ours", compositePodGroupTemplates=roots), owner)
    function = account(conversation, "create-workload", "POST", path, workload("theirs"))
    stored = function.must("POST", path, large)
    assert len(json.dumps(stored["metadata"]["managedFields"])) > 65_536


def test_a_status_with_many_conditions(conversation: Conversation) -> None:
    """A Job with 500 conditions of others."""
    name, path = "large", jobs(conversation.namespace)
    conversation.api.request("DELETE", f"{path}/{name}", query={"propagationPolicy": "Background"})
    conversation.api.must("POST", path, job(name))
    of_others = [{"type": f"example.com/{number}", "status": "True"} for number in range(500)]
    status = f"{path}/{name}/status"
    conversation.api.must("PATCH", status, {"status": {"conditions": of_others}}, MERGE_PATCH)
    misuse = {"status": {"conditions": of_others[1:]}}
    function = account(conversation, "emit-conditions", "PATCH", status, misuse, MERGE_PATCH)
    ours = {"type": "muster.dev/PodGroupsReady", "status": "True"}
    function.api.must("PATCH", status, {"status": {"conditions": [ours, *of_others]}}, MERGE_PATCH)


def test_a_status_with_a_megabyte_of_managed_fields(conversation: Conversation) -> None:
    """A Job for which a user applied a megabyte gets its condition within the limit on costs."""
    name, path = "managed", jobs(conversation.namespace)
    conversation.api.request("DELETE", f"{path}/{name}", query={"propagationPolicy": "Background"})
    conversation.api.must("POST", path, job(name))
    theirs = {"metadata": {"managedFields": [_a_megabyte("batch/v1")]}}
    conversation.api.must("PATCH", f"{path}/{name}", theirs, MERGE_PATCH)
    status, misuse = f"{path}/{name}/status", {"status": {"active": 3}}
    function = account(conversation, "emit-conditions", "PATCH", status, misuse, MERGE_PATCH)
    ours = {"type": "muster.dev/PodGroupsReady", "status": "True"}
    function.api.must("PATCH", status, {"status": {"conditions": [ours]}}, MERGE_PATCH)

"""Muster's three admission policies take effect exactly while policy and binding exist."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.objects import yaml_files
from muster.simulator.apiserver import ApiServer
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import Object, core, job, jobs, pod
from tests.support.births import metadata_of_pods

ADMISSION = Path(__file__).parents[4] / "eventing/admission"
GROUP = "muster.dev/group"
UID = "12345678-1111-1111-1111-111111111111"
MEMBER = metadata_of_pods("j", UID, **{GROUP: "trainer"})
INDEXED: Object = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}
PATHS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}


def _install(api: KubernetesApi, *kinds: str) -> None:
    for path in sorted(ADMISSION.glob("*.yaml")):
        for document in yaml_files.load_all(path.read_text()):
            if document and document["kind"] in kinds:
                plural = PATHS[document["kind"]]
                api.must("POST", f"/apis/admissionregistration.k8s.io/v1/{plural}", document)


@pytest.fixture
def policies(api: KubernetesApi) -> KubernetesApi:
    """A server with both policies bound, and a namespace that opted in."""
    _install(api, *PATHS)
    labels = {"muster.dev/gang-jobs": "enabled"}
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "team", "labels": labels}})
    return api


def test_a_labelled_pod_is_stamped_and_gated(policies: KubernetesApi) -> None:
    """A labelled pod of a Job is born with its group's name and our gate."""
    spec = policies.must("POST", core("team", "pods"), pod("p", MEMBER))["spec"]
    assert spec["schedulingGroup"] == {"podGroupName": "j-trainer-12345678"}
    assert spec["schedulingGates"] == [{"name": "muster.dev/pod-group"}]


def test_other_gates_stay(policies: KubernetesApi) -> None:
    """Our gate comes beside the gates that are there."""
    body = pod("p", MEMBER, schedulingGates=[{"name": "example.com/wait"}])
    spec = policies.must("POST", core("team", "pods"), body)["spec"]
    assert [gate["name"] for gate in spec["schedulingGates"]] == ["example.com/wait", "muster.dev/pod-group"]


def test_an_unlabelled_pod_is_left_alone(policies: KubernetesApi) -> None:
    """A pod without a group label is born as it came."""
    assert "schedulingGroup" not in policies.must("POST", core("team", "pods"), pod())["spec"]


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((), id="neither policy nor binding"),
        pytest.param(("MutatingAdmissionPolicy",), id="a policy without its binding"),
        pytest.param(("MutatingAdmissionPolicyBinding",), id="a binding without its policy"),
    ],
)
def test_nothing_happens_without_policy_and_binding(api: KubernetesApi, kinds: tuple[str, ...]) -> None:
    """Half an installation has no effect."""
    _install(api, *kinds)
    assert "schedulingGroup" not in api.must("POST", core("default", "pods"), pod("p", MEMBER))["spec"]


def test_an_indexed_job_is_labelled_where_the_namespace_opted_in(policies: KubernetesApi) -> None:
    """mark-jobs labels the template of a gang-shaped Job, in an enabled namespace only."""

    def labels(namespace: str) -> dict[str, Any]:
        made = policies.must("POST", jobs(namespace), job(**INDEXED))
        return dict(made["spec"]["template"]["metadata"]["labels"])

    assert labels("team")[GROUP] == "main"
    assert GROUP not in labels("default")


def test_a_removed_policy_has_no_effect(policies: KubernetesApi) -> None:
    """After the policy is deleted, pods are born bare."""
    policies.must(
        "DELETE", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/muster-stamp-pods"
    )
    assert "schedulingGroup" not in policies.must("POST", core("team", "pods"), pod("p", MEMBER))["spec"]


def test_a_binding_may_be_for_one_namespace(api: KubernetesApi) -> None:
    """A binding with a namespaceSelector has its effect there and nowhere else."""
    _install(api, "MutatingAdmissionPolicy")
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    spec = {"policyName": "muster-stamp-pods", "matchResources": {"namespaceSelector": selector}}
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
    api.must("POST", path, {"metadata": {"name": "here"}, "spec": spec})
    api.must("POST", "/api/v1/namespaces", {"metadata": {"name": "there"}})
    assert "schedulingGroup" in api.must("POST", core("default", "pods"), pod("p", MEMBER))["spec"]
    assert "schedulingGroup" not in api.must("POST", core("there", "pods"), pod("p", MEMBER))["spec"]


def test_a_labelled_job_asks_for_a_gang_where_jobs_are_grouped_upstream(
    server: ApiServer, policies: KubernetesApi
) -> None:
    """With WorkloadWithJob schedule-jobs fills spec.scheduling; without, the field is dropped."""
    assert "scheduling" not in policies.must("POST", jobs("team"), job("before", **INDEXED))["spec"]
    server.gates = replace(server.gates, workload_with_job=True)
    spec = policies.must("POST", jobs("team"), job("after", **INDEXED))["spec"]
    assert spec["scheduling"] == {"schedulingPolicy": {"gang": {}}}

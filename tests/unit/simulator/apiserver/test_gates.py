"""Feature gates: with a gate off, a field is silently dropped or a resource is not served."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster.api import MERGE_PATCH, KubernetesApi
from tests.contract.bodies import (
    CLASSES,
    Object,
    composite,
    core,
    gang,
    groups,
    job,
    jobs,
    pod,
    pod_group,
    priority_class,
    template,
    workload,
)

NS = "default"
GROUP = {"podGroupName": "group"}
TOPOLOGY = {"topology": [{"key": "rack"}]}
REFERENCE = {"workloadName": "work", "templateName": "main"}


def _names(api: KubernetesApi, version: str) -> set[str]:
    discovery = api.request("GET", f"/apis/scheduling.k8s.io/{version}")
    return {entry["name"] for entry in discovery.body["resources"]} if discovery.ok else set()


def test_generic_workload_off_takes_the_resources_away(server: ApiServer, api: KubernetesApi) -> None:
    """Without GenericWorkload no Workload or PodGroup is served, though the versions are switched on."""
    server.gates = replace(server.gates, generic_workload=False, composite_pod_group=False)
    assert _names(api, "v1beta1") == set()
    assert api.request("POST", groups(NS, "podgroups"), pod_group()).status == 404


def test_a_version_that_is_not_served_is_absent(server: ApiServer, api: KubernetesApi) -> None:
    """Without --runtime-config for it, v1beta1 is absent while v1alpha3 stays."""
    server.gates = replace(server.gates, served=frozenset({"v1alpha3"}))
    assert _names(api, "v1beta1") == set()
    assert "podgroups" in _names(api, "v1alpha3")
    assert api.request("GET", groups(NS, "podgroups")).status == 404


def test_gates_can_be_switched_on_while_the_server_runs() -> None:
    """An API that is switched on later is served from the next request on."""
    with ApiServer(gates=Gates(generic_workload=False, composite_pod_group=False)) as server:
        api = KubernetesApi(server.url)
        assert api.request("POST", groups(NS, "podgroups"), pod_group()).status == 404
        server.gates = Gates()
        assert api.request("POST", groups(NS, "podgroups"), pod_group()).status == 201


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        pytest.param(core(NS, "pods"), pod(schedulingGroup=GROUP), ("spec",), id="a pod's schedulingGroup"),
        pytest.param(
            jobs(NS),
            job(template={"schedulingGroup": GROUP}),
            ("spec", "template", "spec"),
            id="the schedulingGroup of a Job's template",
        ),
    ],
)
def test_scheduling_group_is_dropped_while_the_gate_is_off(
    server: ApiServer, api: KubernetesApi, path: str, body: dict[str, Any], where: tuple[str, ...]
) -> None:
    """A schedulingGroup vanishes from new objects without an error."""
    server.gates = replace(server.gates, generic_workload=False)
    stored = api.must("POST", path, body)
    for step in where:
        stored = stored[step]
    assert "schedulingGroup" not in stored


def test_scheduling_group_stays_where_it_was(server: ApiServer, api: KubernetesApi) -> None:
    """A pod that has a schedulingGroup keeps it when the gate is switched off."""
    api.must("POST", core(NS, "pods"), pod(schedulingGroup=GROUP))
    server.gates = replace(server.gates, generic_workload=False)
    body = {"metadata": {"labels": {"a": "b"}}}
    stored = api.must("PATCH", core(NS, "pods", "pod"), body, MERGE_PATCH)
    assert stored["spec"]["schedulingGroup"] == GROUP


def test_topology_is_dropped_while_its_gate_is_off(server: ApiServer, api: KubernetesApi) -> None:
    """SchedulingConstraints vanish from Workloads and PodGroups."""
    server.gates = replace(server.gates, topology_aware_workload_scheduling=False)
    stored = api.must(
        "POST", groups(NS, "workloads"), workload("work", template(schedulingConstraints=TOPOLOGY))
    )
    assert stored["spec"]["podGroupTemplates"][0]["schedulingConstraints"] is None
    stored = api.must("POST", groups(NS, "podgroups"), pod_group(schedulingConstraints=TOPOLOGY))
    assert "schedulingConstraints" not in stored["spec"]


def test_composites_are_dropped_while_their_gate_is_off(server: ApiServer, api: KubernetesApi) -> None:
    """A Workload of composites is then empty and refused; a PodGroup loses its parent and is a root."""
    server.gates = replace(server.gates, composite_pod_group=False)
    body = workload(compositePodGroupTemplates=[composite("root", template())])
    answer = api.request("POST", groups(NS, "workloads"), body)
    assert (answer.status, "must specify one of" in answer.message) == (422, True)
    body = pod_group(parentCompositePodGroupName="parent", workloadRef=REFERENCE)
    assert "parentCompositePodGroupName" not in api.must("POST", groups(NS, "podgroups"), body)["spec"]
    assert "compositepodgroups" not in _names(api, "v1alpha3")


def test_preemption_policy_is_kept_and_defaulted_while_its_gate_is_on(
    server: ApiServer, api: KubernetesApi
) -> None:
    """With PodGroupPreemptionPolicy a PodGroup gets the policy of its class."""
    server.gates = replace(server.gates, pod_group_preemption_policy=True)
    stored = api.must("POST", groups(NS, "podgroups"), pod_group())
    assert stored["spec"]["preemptionPolicy"] == "PreemptLowerPriority"


@pytest.mark.parametrize(
    "asked", [{}, {"preemptionPolicy": "PreemptLowerPriority"}], ids=["default", "asked"]
)
def test_a_group_of_another_preemption_policy_than_its_class_is_refused(
    server: ApiServer, api: KubernetesApi, asked: dict[str, Any]
) -> None:
    """The default is filled in before admission compares: who names a polite class has to say Never too."""
    server.gates = replace(server.gates, pod_group_preemption_policy=True)
    api.must("POST", CLASSES, priority_class("polite", 10, preemptionPolicy="Never"))
    body = pod_group(priorityClassName="polite", **asked)
    answer = api.request("POST", groups(NS, "podgroups"), body)
    words = (
        "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod group spec; "
        "priority admission controller computed Never from the given PriorityClass name"
    )
    assert (answer.status, words in answer.message) == (403, True), answer.message
    body = pod_group(priorityClassName="polite", preemptionPolicy="Never")
    assert api.must("POST", groups(NS, "podgroups"), body)["spec"]["preemptionPolicy"] == "Never"


def test_claims_are_kept_while_their_gate_is_on(server: ApiServer, api: KubernetesApi) -> None:
    """With DRAWorkloadResourceClaims a PodGroup has up to four claims, each of one source."""
    server.gates = replace(server.gates, dra_workload_resource_claims=True)
    claims = [{"name": f"c{i}", "resourceClaimName": "one"} for i in range(5)]
    stored = api.must("POST", groups(NS, "podgroups"), pod_group(resourceClaims=claims[:4]))
    assert len(stored["spec"]["resourceClaims"]) == 4
    answer = api.request("POST", groups(NS, "podgroups"), pod_group("five", resourceClaims=claims))
    assert "spec.resourceClaims: Too many: 5: must have at most 4 items" in answer.message
    answer = api.request("POST", groups(NS, "podgroups"), pod_group("none", resourceClaims=[{"name": "c"}]))
    assert "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`" in answer.message


def test_job_scheduling_is_validated_while_its_gate_is_on(server: ApiServer, api: KubernetesApi) -> None:
    """With WorkloadWithJob minCount is at most parallelism, and the variant is frozen."""
    server.gates = replace(server.gates, workload_with_job=True)
    too_many = job(parallelism=2, scheduling={"schedulingPolicy": gang(3)})
    answer = api.request("POST", jobs(NS), too_many)
    assert "minCount: Invalid value: 3: must not be greater than parallelism (2)" in answer.message
    api.must("POST", jobs(NS), job(parallelism=2, scheduling={"schedulingPolicy": gang(2)}))
    change: Object = {"spec": {"scheduling": {"schedulingPolicy": {"gang": None, "basic": {}}}}}
    answer = api.request("PATCH", jobs(NS, "job"), change, MERGE_PATCH)
    assert "the basic/gang policy variant is immutable after creation" in answer.message
    answer = api.request("PATCH", jobs(NS, "job"), {"spec": {"scheduling": None}}, MERGE_PATCH)
    assert "spec.scheduling: Invalid value: null: field cannot be cleared once set" in answer.message


def test_disruption_of_all_needs_a_gang_in_a_job(server: ApiServer, api: KubernetesApi) -> None:
    """A Job's disruption mode `all` goes with a gang only."""
    server.gates = replace(server.gates, workload_with_job=True)
    answer = api.request("POST", jobs(NS), job(scheduling={"disruptionMode": {"all": {}}}))
    assert "the disruptionMode `all` is not supported with the Basic scheduling policy" in answer.message


def test_1_36_keeps_priorities_while_their_gate_is_on() -> None:
    """With WorkloadAwarePreemption a v1alpha2 PodGroup has priority and disruption mode."""
    gates = Gates(workload_aware_preemption=True)
    with ApiServer(release="1.36", gates=gates) as server:
        body = pod_group(version="v1alpha2", disruptionMode="PodGroup")
        stored = KubernetesApi(server.url).must("POST", groups(NS, "podgroups", version="v1alpha2"), body)
        assert (stored["spec"]["priority"], stored["spec"]["disruptionMode"]) == (0, "PodGroup")


def test_an_unknown_release_is_refused() -> None:
    """There is data for 1.37 and 1.36 only."""
    with pytest.raises(ValueError, match=r"1\.35"):
        ApiServer(release="1.35")

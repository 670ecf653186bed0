"""`muster check` against the real API server: its gates and the admission policies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.data import EVENTING
from muster.operator.check import Finding, Level, check_cluster, check_installation
from muster.simulator.overlays import load
from tests.cluster import cluster, manifests
from tests.cluster.cluster import RealCluster
from tests.cluster.control_plane import DEFAULT_GATES, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

POLICIES = load(EVENTING / "admission")


@pytest.fixture(scope="module")
def client(real_server: RealCluster) -> Iterator[Client]:
    """A server with the admission policies of eventing/."""
    manifests.apply(real_server.api, POLICIES)
    yield client_of(str(real_server.kubeconfig))
    for policy in POLICIES:
        real_server.api.must("DELETE", manifests.path(policy))


def _levels(findings: Iterator[Finding]) -> dict[str, Level]:
    return {finding.about: finding.level for finding in findings}


def test_check_reports_the_gates_and_versions_of_the_api_server(client: Client) -> None:
    """Gates and versions, seen from outside; Knative is not there."""
    levels = _levels(check_cluster(client, "default"))
    assert levels["scheduling API"] == levels["pod.spec.schedulingGroup"] == Level.OK
    assert levels["gate WorkloadWithJob"] == levels["admission policies"] == Level.OK
    assert levels["JobSet"] == levels["the Trainer"] == Level.OK
    assert levels["Knative Eventing"] == Level.FAIL


def test_the_job_controller_of_1_36_has_to_leave_jobs_alone() -> None:
    """With the gate WorkloadWithJob on, the check fails and says where to switch it off."""
    gates = (*DEFAULT_GATES["1.36"], "WorkloadWithJob")
    options = cluster.ClusterOptions(Release("1.36", gates=gates), controllers=(), types=())
    with cluster.running(options) as made:
        findings = check_cluster(client_of(str(made.kubeconfig)), "default")
        (finding_of_gate,) = [finding for finding in findings if finding.about == "gate WorkloadWithJob"]
    assert finding_of_gate.level == Level.FAIL
    assert "switch it off on kube-apiserver and kube-controller-manager" in finding_of_gate.message


def test_the_admission_policies_are_installed(client: Client) -> None:
    """The real API server has them, and their bindings, by the names that are looked for."""
    levels = _levels(check_installation(client))
    assert levels["MutatingAdmissionPolicy"] == levels["MutatingAdmissionPolicyBinding"] == Level.OK

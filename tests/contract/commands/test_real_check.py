"""`muster check` against the real API server: roles and policies as eventing/ installs them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.data import EVENTING
from muster.operator.check import Finding, Level, check_cluster, check_installation
from muster.simulator.overlays import load
from tests.cluster import cluster, manifests
from tests.cluster.cluster import RealCluster
from tests.cluster.control_plane import DEFAULT_GATES, Release

NOW = datetime(2030, 1, 1, tzinfo=UTC)
"""When no namespace of these tests is new."""

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

HOME = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}}
RBAC = load(EVENTING / "rbac")
POLICIES = [*load(EVENTING / "admission"), *load(EVENTING / "security" / "accounts")]


@pytest.fixture(scope="module")
def client(real_server: RealCluster) -> Iterator[Client]:
    """A server with roles and policies of eventing/."""
    manifests.apply(real_server.api, [HOME, *RBAC, *POLICIES])
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


def test_roles_and_policies_are_as_installed(client: Client) -> None:
    """Every account may do all that its role says; what the API server adds to a policy is no change."""
    levels = _levels(check_installation(client, [*RBAC, *POLICIES], NOW))
    levels.pop("label muster.dev/gang-jobs")  # other tests of this server may have labelled one
    assert len([about for about in levels if about.startswith("permissions of")]) >= 7
    assert "policies of the service accounts" in levels
    assert set(levels.values()) == {Level.OK}


def test_a_missing_permission_is_reported(client: Client, real_server: RealCluster) -> None:
    """A role without one of its rules, as after a half-finished upgrade."""
    role = next(
        obj for obj in RBAC if obj["kind"] == "ClusterRole" and "patch-pods" in obj["metadata"]["name"]
    )
    real_server.api.must("PUT", manifests.path(role), {**role, "rules": role["rules"][:-1]})
    by_subject = {finding.about: finding for finding in check_installation(client, RBAC, NOW)}
    assert by_subject["permissions of patch-pods"].level == Level.FAIL
    assert "patch pods" in by_subject["permissions of patch-pods"].message
    manifests.apply(real_server.api, [role])

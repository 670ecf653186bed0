"""`muster check` against the real API server: roles and policies as eventing/ installs them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.cluster.client import Client
from muster.files import EVENTING
from muster.kustomize import load
from muster.operator.check import Finding, Level, check_cluster, check_installation
from tests.cluster import cluster, manifests
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import DEFAULT_GATES, Release

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

HOME = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}}
RBAC, POLICIES = load(EVENTING / "rbac"), load(EVENTING / "admission")


@pytest.fixture(scope="module")
def client(real_server: Cluster) -> Iterator[Client]:
    """A server with roles and policies of eventing/."""
    manifests.apply(real_server.api, [HOME, *RBAC, *POLICIES])
    yield Client.from_kubeconfig(str(real_server.kubeconfig))
    for one in POLICIES:
        real_server.api.must("DELETE", manifests.path(one))


def _found(found: Iterator[Finding]) -> dict[str, Level]:
    return {one.about: one.level for one in found}


def test_cluster_has_what_the_api_server_was_started_with(client: Client) -> None:
    """Gates and versions, seen from outside; Knative is not there."""
    found = _found(check_cluster(client, "default"))
    assert found["scheduling API"] == found["pod.spec.schedulingGroup"] == Level.OK
    assert found["gate WorkloadWithJob"] == found["admission policies"] == Level.OK
    assert found["JobSet"] == found["the Trainer"] == Level.OK
    assert found["Knative Eventing"] == Level.FAIL


def test_the_job_controller_of_1_36_has_to_leave_jobs_alone() -> None:
    """With the gate WorkloadWithJob on, the check fails and says where to switch it off."""
    gates = (*DEFAULT_GATES["1.36"], "WorkloadWithJob")
    options = cluster.Options(Release("1.36", gates=gates), controllers=(), types=())
    with cluster.running(options) as made:
        found = check_cluster(Client.from_kubeconfig(str(made.kubeconfig)), "default")
        (told,) = [one for one in found if one.about == "gate WorkloadWithJob"]
    assert told.level == Level.FAIL
    assert "switch it off on kube-apiserver and kube-controller-manager" in told.message


def test_roles_and_policies_are_as_installed(client: Client) -> None:
    """Every account may do all that its role says; what the API server adds to a policy is no change."""
    found = _found(check_installation(client, [*RBAC, *POLICIES]))
    found.pop("label muster.dev/gang-jobs")  # other tests of this server may have labelled one
    assert len([about for about in found if about.startswith("permissions of")]) >= 7
    assert set(found.values()) == {Level.OK}


def test_missing_right_is_found(client: Client, real_server: Cluster) -> None:
    """A role without one of its rules, as after a half-finished upgrade."""
    role = next(
        one for one in RBAC if one["kind"] == "ClusterRole" and "patch-pods" in one["metadata"]["name"]
    )
    real_server.api.must("PUT", manifests.path(role), {**role, "rules": role["rules"][:-1]})
    told = {one.about: one for one in check_installation(client, RBAC)}
    assert told["permissions of patch-pods"].level == Level.FAIL
    assert "patch pods" in told["permissions of patch-pods"].message
    manifests.apply(real_server.api, [role])

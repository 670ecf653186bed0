"""schedule-jobs: the embedded API server, the real one with the gate WorkloadWithJob, and without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.data import EVENTING
from muster.policy import group_labels
from muster.simulator.apiserver import ApiServer, Gates
from tests.cluster import cluster, manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.cluster.control_plane import DEFAULT_GATES, Release
from tests.cluster.processes import until
from tests.contract.admission.admission_variants import job
from tests.contract.admission.scheduling_variants import GANG, JOBS, LABELLED

ADMISSION = EVENTING / "admission"
NATIVE_JOBS = EVENTING / "overlays/native-jobs/native-jobs.yaml"
ENABLED = {group_labels.NAMESPACE_SWITCH: "enabled"}
HOME = "scheduling-of-jobs"


@pytest.fixture(scope="module")
def gate_on() -> Iterator[KubernetesApi]:
    """An API server that keeps spec.scheduling, with the policies that a cluster has."""
    release = Release("1.37", gates=(*DEFAULT_GATES["1.37"], "WorkloadWithJob"))
    with cluster.running(cluster.ClusterOptions(release, controllers=(), types=())) as made:
        manifests.apply(made.api, [_home(), *manifests.documents(sorted(ADMISSION.glob("*.yaml")))])
        assert until(lambda: _stored(made.api, job()).get("scheduling") == GANG, 90), "no policy acts"
        yield made.api


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def api(request: pytest.FixtureRequest) -> Iterator[KubernetesApi]:
    """The embedded server with the gate and the policies, then the real one."""
    if request.param == "real":
        yield request.getfixturevalue("gate_on")
        return
    with ApiServer(gates=Gates(workload_with_job=True)) as server:
        embedded = KubernetesApi(server.url)
        manifests.apply(embedded, [_home(), *manifests.documents(sorted(ADMISSION.glob("*.yaml")))])
        yield embedded


@pytest.mark.parametrize(("made", "asked"), [pytest.param(*case, id=name) for name, case in JOBS.items()])
def test_the_policy_asks_for(api: KubernetesApi, made: dict[str, Any], asked: dict[str, Any] | None) -> None:
    """The API server stores this in spec.scheduling, or what the user wrote."""
    assert _stored(api, made).get("scheduling") == (asked or made["spec"].get("scheduling"))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_the_order_of_mark_jobs_and_schedule_jobs_makes_no_difference(gate_on: KubernetesApi) -> None:
    """Their order is chance, thrown anew with every change of a policy: six times it makes no difference."""
    (binding,) = [
        manifest
        for manifest in manifests.documents([ADMISSION / "schedule-jobs.yaml"])
        if manifest["kind"].endswith("Binding")
    ]
    by_hand = job(template_labels=LABELLED)
    for _ in range(6):
        gate_on.must("DELETE", manifests.path(binding))
        assert until(lambda: "scheduling" not in _stored(gate_on, by_hand), 90), "the policy still acts"
        manifests.apply(gate_on, [binding])
        assert until(lambda: _stored(gate_on, by_hand).get("scheduling") == GANG, 90), "no policy acts"
        spec = _stored(gate_on, job())
        assert spec["template"]["metadata"]["labels"][group_labels.GROUP] == "main"
        assert spec["scheduling"] == GANG


@pytest.mark.real
@pytest.mark.timeout(300)
def test_an_unlabelled_job_outside_opted_in_namespaces_asks_for_nothing(gate_on: KubernetesApi) -> None:
    """Not for a basic group either, which the Job controller makes unasked."""
    path = "/apis/batch/v1/namespaces/default/jobs"
    made = {**job(), "metadata": {**job()["metadata"], "namespace": "default"}}
    stored = gate_on.must("POST", path, made, query={"dryRun": "All"})["spec"]
    assert "scheduling" not in stored
    assert group_labels.GROUP not in _labels(stored)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_without_the_gate_nothing_is_asked(real_server: RealCluster) -> None:
    """1.37 drops the field, 1.36 does not know it: the Job is labelled as ever, and never refused."""
    api, policies = real_server.api, list(manifests.documents(sorted(ADMISSION.glob("*.yaml"))))
    manifests.apply(api, [_home(), *policies])
    assert until(lambda: group_labels.GROUP in _labels(_stored(api, job())), 90), "no policy acts"
    for made in (job(), job(template_labels=LABELLED), job(template_labels=LABELLED, completions=6)):
        assert "scheduling" not in _stored(api, made)
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


@pytest.mark.real
@pytest.mark.timeout(300)
def test_native_jobs_asks_for_the_gangs_that_mark_jobs_would_label(gate_on: KubernetesApi) -> None:
    """With the two other policies away: gang-shaped Jobs that are not opted out, labelled or not."""
    names = ("muster-mark-jobs", "muster-schedule-jobs")
    policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    for name in names:
        gate_on.must("DELETE", f"{policies}/{name}")
    manifests.apply(gate_on, manifests.documents([NATIVE_JOBS]))
    assert until(lambda: _asked_but_not_labelled(_stored(gate_on, job())), 90), "native-jobs does not act"

    assert _stored(gate_on, job(template_labels=LABELLED))["scheduling"] == GANG
    for left_alone in (
        job(completions=6),
        job(parallelism=1, completions=1),
        job(template_labels={group_labels.GROUP: group_labels.OPTED_OUT}),
        job(labels={group_labels.JOBSET_UID: "7c6a1f0f-0000-4000-8000-000000000000"}),
        job(pod_spec={"schedulerName": "volcano"}),
        job(pod_spec={"schedulingGroup": {"podGroupName": "mine"}}),
    ):
        assert "scheduling" not in _stored(gate_on, left_alone)


def _asked_but_not_labelled(spec: dict[str, Any]) -> bool:
    return spec.get("scheduling") == GANG and group_labels.GROUP not in _labels(spec)


def _stored(api: KubernetesApi, made: dict[str, Any]) -> dict[str, Any]:
    path = f"/apis/batch/v1/namespaces/{HOME}/jobs"
    spec: dict[str, Any] = api.must("POST", path, made, query={"dryRun": "All"})["spec"]
    return spec


def _labels(spec: dict[str, Any]) -> dict[str, str]:
    labels: dict[str, str] = spec["template"]["metadata"].get("labels") or {}
    return labels


def _home() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME, "labels": ENABLED}}

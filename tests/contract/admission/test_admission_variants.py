"""Each variant of the admission policies, on the embedded API server and on the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from muster.data import EVENTING
from muster.objects.resources import JOBSETS as JOBSETS_OF
from muster.policy import group_labels, limits
from muster.policy.group_labels import GROUP
from muster.policy.owners.jobset import JobSetSpec, default_groups
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.cluster import manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.processes import until
from tests.contract.admission.admission_variants import (
    JOB,
    JOBS,
    JOBSETS,
    LABEL,
    PODS,
    job,
    jobset,
    pod,
    replicated_job,
)
from tests.contract.conftest import EVERY_SERVER, Servers
from tests.support.births import stamp_between

pytestmark = pytest.mark.timeout(300)
ADMISSION = EVENTING / "admission"
ENABLED = {group_labels.NAMESPACE_SWITCH: "enabled"}
DRY_RUN = {"dryRun": "All"}


@pytest.fixture(scope="module", params=EVERY_SERVER)
def api(servers: Servers, request: pytest.FixtureRequest) -> Iterator[KubernetesApi]:
    """A server with the policies, one namespace that opted in and one that did not."""
    policies = list(manifests.documents(sorted(ADMISSION.glob("*.yaml"))))
    namespaces = [_namespace("variants-in", ENABLED), _namespace("variants-out", {})]
    if request.param == "embedded":
        with ApiServer() as server:
            api = KubernetesApi(server.url)
            server.load(resource_definitions("jobset"))
            manifests.apply(api, [*namespaces, *policies])
            yield api
        return
    api = servers.get(request.param).api
    manifests.apply(api, [*namespaces, *policies])
    assert until(lambda: _at_work(api), 90), "the policies did not take effect"
    yield api
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


@pytest.mark.parametrize(("born", "stamp"), [pytest.param(*case, id=name) for name, case in PODS.items()])
def test_the_policy_stamps_pods(
    api: KubernetesApi, born: dict[str, Any], stamp: dict[str, Any] | None
) -> None:
    """The API server stores the pod with this group name and gate, or unchanged."""
    stored = _born(api, born)
    assert stamp_between(born, stored) == stamp
    given, kept = (
        [gate["name"] for gate in one["spec"].get("schedulingGates", [])] for one in (born, stored)
    )
    assert given == [gate for gate in kept if gate != group_labels.GATE]


@pytest.mark.parametrize(("made", "label"), [pytest.param(*case, id=name) for name, case in JOBS.items()])
def test_the_policy_labels_jobs(api: KubernetesApi, made: dict[str, Any], label: str | None) -> None:
    """The API server stores the template with this group label; unchanged without opt-in."""
    before = made["spec"]["template"]["metadata"]["labels"].get(group_labels.GROUP)
    assert _label(api, "variants-in", made) == (label or before)
    assert _label(api, "variants-out", made) == before


@pytest.mark.parametrize(("made", "groups"), [pytest.param(*case, id=name) for name, case in JOBSETS.items()])
def test_the_policy_labels_jobsets(api: KubernetesApi, made: dict[str, Any], groups: dict[str, str]) -> None:
    """The API server stores the templates with these group labels, and mark_runtime computes the same."""
    assert _groups(api, "variants-in", made) == groups
    spec = JobSetSpec.model_validate(made["spec"], by_alias=True)
    by_hand = {one.name: one.template.spec.template.metadata.labels for one in spec.replicated_jobs}
    given = {name: labels[GROUP] for name, labels in by_hand.items() if GROUP in labels}
    assert {**given, **default_groups(spec, by_hand)} == groups
    assert _groups(api, "variants-out", made) == given


def test_a_jobset_of_many_templates_stays_within_the_limit_of_cost(
    api: KubernetesApi, request: pytest.FixtureRequest
) -> None:
    """As many as the functions take are labelled, more are left alone; the embedded server takes fewer."""
    most = 50 if "embedded" in request.node.name else limits.REPLICATED_JOBS
    many = [replicated_job(f"part-{number}") for number in range(limits.REPLICATED_JOBS + 1)]
    assert set(_groups(api, "variants-in", jobset(*many[:most])).values()) == {"main"}
    assert _groups(api, "variants-in", jobset(*many)) == {}


@pytest.mark.parametrize(
    ("born", "stamp"), [pytest.param(*case, id=name) for name, case in PODS.items() if case[1]]
)
def test_the_planner_computes_the_name_of_the_stamp(born: dict[str, Any], stamp: dict[str, Any]) -> None:
    """The planner makes the group that a stamped pod names."""
    assert group_labels.stamped_name(born["metadata"]["labels"]) == stamp["podGroupName"]


def _at_work(api: KubernetesApi) -> bool:
    """Return whether all policies act: each is compiled some time after it was created.

    For some seconds after a CRD was created, objects of its kind that a policy changes are refused: 503.
    """
    stamped, labelled = _born(api, pod(LABEL, JOB)), _label(api, "variants-in", job())
    probe = jobset(replicated_job("worker"))
    answer = api.request("POST", JOBSETS_OF.path("", "variants-in"), probe, query=DRY_RUN)
    return (
        "schedulingGroup" in stamped["spec"] and labelled == "main" and GROUP in str(answer.body.get("spec"))
    )


def _groups(api: KubernetesApi, namespace: str, sent: dict[str, Any]) -> dict[str, str]:
    stored = api.must("POST", JOBSETS_OF.path("", namespace), sent, query=DRY_RUN)
    labels = {
        one["name"]: one["template"]["spec"]["template"]["metadata"].get("labels") or {}
        for one in stored["spec"]["replicatedJobs"]
    }
    return {name: its[GROUP] for name, its in labels.items() if GROUP in its}


def _born(api: KubernetesApi, sent: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = api.must("POST", "/api/v1/namespaces/variants-out/pods", sent, query=DRY_RUN)
    return stored


def _label(api: KubernetesApi, namespace: str, sent: dict[str, Any]) -> str | None:
    stored = api.must("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", sent, query=DRY_RUN)
    label: str | None = (stored["spec"]["template"]["metadata"].get("labels") or {}).get(group_labels.GROUP)
    return label


def _namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}

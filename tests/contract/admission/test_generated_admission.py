"""The policies do the same in the embedded API server as in the real one, and name what the planner makes.

All are given the same generated objects. Everything is created with ``dryRun=All``: admission runs, nothing
stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from muster.policy import group_labels
from muster.simulator.apiserver import ApiServer
from tests.cluster import manifests
from tests.cluster.api import KubernetesApi
from tests.cluster.cluster import RealCluster
from tests.cluster.processes import until
from tests.contract.admission import generated
from tests.support.births import label_between, metadata_of_pods, stamp_between

ADMISSION = EVENTING / "admission"
OPTED_IN, OTHER = "opted-in", "other"
PODS = f"/api/v1/namespaces/{OTHER}/pods"
JOBS = f"/apis/batch/v1/namespaces/{OPTED_IN}/jobs"
DRY_RUN = {"dryRun": "All"}
COUNT = 400


@pytest.fixture(scope="module")
def api(real_server: RealCluster) -> Iterator[KubernetesApi]:
    """A real server with the policies, one namespace that opted in and one that did not."""
    api = real_server.api
    policies = list(manifests.documents(sorted(ADMISSION.glob("*.yaml"))))
    manifests.apply(api, [*_furniture(), *policies])
    assert until(lambda: _at_work(api), 90), "the admission policies did not come into effect"
    yield api
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


@pytest.fixture(scope="module")
def embedded() -> Iterator[KubernetesApi]:
    """An embedded server with the same in it."""
    with ApiServer() as server:
        api = KubernetesApi(server.url)
        manifests.apply(api, [*_furniture(), *manifests.documents(sorted(ADMISSION.glob("*.yaml")))])
        yield api


@pytest.mark.thorough
def test_the_planner_computes_the_names_on_generated_pods(embedded: KubernetesApi) -> None:
    """The planner makes the group that a stamped pod names, whatever its labels."""
    differences, stamped = [], 0
    for pod in generated.pods(COUNT):
        stamp = stamp_between(pod, embedded.must("POST", PODS, pod, query=DRY_RUN))
        planned = group_labels.stamped_name(pod["metadata"].get("labels") or {})
        stamped += stamp is not None
        if stamp is not None and stamp["podGroupName"] != planned:
            differences.append((pod, f"the policy says {stamp}, the planner says {planned}"))
    assert not differences, _report(differences)
    assert COUNT / 8 < stamped < COUNT * 7 / 8, f"{stamped} of {COUNT} pods stamped: one side is hardly tried"


@pytest.mark.thorough
def test_the_planner_computes_the_group_labels_of_generated_jobs_of_jobsets(embedded: KubernetesApi) -> None:
    """The planner knows the group of a replicatedJob's pods before there is a Job."""
    differences, labelled = [], 0
    for job in generated.jobs(COUNT):
        labels = job["metadata"].get("labels") or {}
        label = label_between(job, embedded.must("POST", JOBS, job, query=DRY_RUN))
        if label is None or group_labels.JOBSET_UID not in labels:
            continue
        name, step = labels.get(group_labels.REPLICATED_JOB, "main"), labels.get(group_labels.ANCESTOR, "")
        planned = group_labels.group_of_replicated_job(name, step)
        labelled += 1
        if label != planned:
            differences.append((job, f"the policy says {label}, the planner says {planned}"))
    assert not differences, _report(differences)
    assert labelled > COUNT / 8, f"{labelled} of {COUNT} Jobs labelled: too one-sided"


@pytest.mark.real
@pytest.mark.timeout(600)
def test_pods_are_stamped_as_in_the_embedded_server(api: KubernetesApi, embedded: KubernetesApi) -> None:
    """Every generated pod gets the same schedulingGroup and gate on both, or neither."""
    differences, stamped = [], 0
    for pod in _known(api, generated.pods(COUNT)):
        answer = api.request("POST", PODS, pod, query=DRY_RUN)
        if not answer.ok:
            differences.append((pod, f"{answer.status} {answer.message}"))
            continue
        ours = stamp_between(pod, embedded.must("POST", PODS, pod, query=DRY_RUN))
        theirs = stamp_between(pod, answer.body)
        stamped += theirs is not None
        if ours != theirs:
            differences.append((pod, f"the real server says {theirs}, the embedded one {ours}"))
    assert not differences, _report(differences)
    assert COUNT / 8 < stamped < COUNT * 7 / 8, f"{stamped} of {COUNT} pods stamped: one side is hardly tried"


@pytest.mark.real
@pytest.mark.timeout(600)
def test_jobs_are_labelled_as_in_the_embedded_server(api: KubernetesApi, embedded: KubernetesApi) -> None:
    """Every generated Job in an opted-in namespace gets the same group label, or none, on both."""
    differences, labelled = [], 0
    for job in _known(api, generated.jobs(COUNT)):
        answer = api.request("POST", JOBS, job, query=DRY_RUN)
        if not answer.ok:
            differences.append((job, f"{answer.status} {answer.message}"))
            continue
        ours = label_between(job, embedded.must("POST", JOBS, job, query=DRY_RUN))
        theirs = label_between(job, answer.body)
        labelled += theirs is not None
        if ours != theirs:
            differences.append((job, f"the real server says {theirs}, the embedded one {ours}"))
    assert not differences, _report(differences)
    assert COUNT / 8 < labelled < COUNT * 7 / 8, f"{labelled} of {COUNT} Jobs labelled: too one-sided"


@pytest.mark.real
@pytest.mark.timeout(600)
def test_jobs_of_other_namespaces_are_left_alone(api: KubernetesApi, embedded: KubernetesApi) -> None:
    """No Job gets a group label where the namespace did not opt in."""
    for job in generated.jobs(60):
        for server in (api, embedded):
            body = server.must("POST", f"/apis/batch/v1/namespaces/{OTHER}/jobs", job, query=DRY_RUN)
            assert label_between(job, body) is None, job


def _furniture() -> list[dict[str, Any]]:
    namespaces = [_namespace(OPTED_IN, {group_labels.NAMESPACE_SWITCH: "enabled"}), _namespace(OTHER, {})]
    return [
        *namespaces,
        *(_priority_class(name, value) for name, value in generated.PRIORITY_CLASSES.items()),
    ]


def _known(api: KubernetesApi, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the fields that the release does not know, which are dropped before admission."""
    if api.must("GET", "/version")["minor"] == "36":
        for obj in objects:
            spec = obj["spec"].get("template", obj)["spec"]
            spec.pop("evictionResponders", None)  # since 1.37
    return objects


def _at_work(api: KubernetesApi) -> bool:
    """Return whether both policies act: they are compiled some time after they were created."""
    labelled = {"metadata": {"name": "probe"}, "spec": _gang_job()}
    job = api.must("POST", JOBS, labelled, query=DRY_RUN)
    metadata = {"name": "probe", **metadata_of_pods("probe", **{group_labels.GROUP: "main"})}
    pod = {"metadata": metadata, "spec": _gang_job()["template"]["spec"]}
    stored = api.must("POST", PODS, pod, query=DRY_RUN)
    return group_labels.GROUP in job["spec"]["template"]["metadata"].get("labels", {}) and bool(
        stored["spec"].get("schedulingGroup")
    )


def _gang_job() -> dict[str, Any]:
    containers = [{"name": "main", "image": "example.com/train"}]
    template = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": containers}}
    return {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template}


def _namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _priority_class(name: str, value: int) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
    }


def _report(differences: list[tuple[dict[str, Any], str]]) -> str:
    shown = "\n".join(f"{difference}\n{yaml.safe_dump(sent)}" for sent, difference in differences[:5])
    return f"{len(differences)} of {COUNT} differ, the first of them:\n{shown}"

"""The admission policies in the real API server say what their Python twin says.

The policies (CEL, eventing/admission) run where pods are born; shared/muster/policy/marks.py is what the
planner and the embedded API server ask. Both are given the same generated objects. Everything is created with
``dryRun=All``: admission runs, nothing stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.policy import marks
from tests.cluster import manifests
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.processes import until
from tests.contract import generated

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ADMISSION = Path(__file__).parents[2] / "eventing/admission"
OPTED_IN, OTHER = "opted-in", "other"
DRY_RUN = {"dryRun": "All"}
COUNT = 400


@pytest.fixture(scope="module")
def api(real_server: Cluster) -> Iterator[Api]:
    """A server with the policies at work, one namespace that opted in and one that did not."""
    api = real_server.api
    namespaces = [_namespace(OPTED_IN, {marks.NAMESPACE_SWITCH: "enabled"}), _namespace(OTHER, {})]
    classes = [_priority_class(name, value) for name, value in generated.PRIORITY_CLASSES.items()]
    policies = list(manifests.documents(sorted(ADMISSION.glob("*.yaml"))))
    manifests.apply(api, [*namespaces, *classes, *policies])
    assert until(lambda: _at_work(api), 90), "the admission policies did not come into effect"
    yield api
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


def test_pods_are_stamped_with_the_name_that_python_computes(api: Api) -> None:
    """Every generated pod gets the schedulingGroup and the gate of its twin, or neither."""
    differences, stamped = [], 0
    for pod in _known(api, generated.pods(COUNT)):
        answer = api.request("POST", f"/api/v1/namespaces/{OTHER}/pods", pod, query=DRY_RUN)
        if not answer.ok:
            differences.append((pod, f"{answer.status} {answer.message}"))
            continue
        spec = answer.body["spec"]
        seen = {**pod, "spec": {**pod["spec"], "priority": spec.get("priority", 0)}}
        wanted, got = marks.stamp(seen), _stamp(pod, spec)
        stamped += wanted is not None
        if got != wanted:
            differences.append((pod, f"the policy says {got}, Python says {wanted}"))
    assert not differences, _report(differences)
    assert COUNT / 8 < stamped < COUNT * 7 / 8, f"{stamped} of {COUNT} pods stamped: one side is hardly tried"


def test_jobs_are_marked_with_the_group_that_python_computes(api: Api) -> None:
    """Every generated Job in an opted-in namespace gets the mark of its twin on its template, or none."""
    differences, marked = [], 0
    for job in _known(api, generated.jobs(COUNT)):
        answer = api.request("POST", f"/apis/batch/v1/namespaces/{OPTED_IN}/jobs", job, query=DRY_RUN)
        if not answer.ok:
            differences.append((job, f"{answer.status} {answer.message}"))
            continue
        wanted = marks.mark_for_job(_as_admission_sees(job), {marks.NAMESPACE_SWITCH: "enabled"})
        got = _new_mark(job, answer.body)
        marked += wanted is not None
        if got != wanted:
            differences.append((job, f"the policy says {got}, Python says {wanted}"))
    assert not differences, _report(differences)
    assert COUNT / 8 < marked < COUNT * 7 / 8, f"{marked} of {COUNT} Jobs marked: one side is hardly tried"


def test_jobs_of_other_namespaces_are_left_alone(api: Api) -> None:
    """No Job gets a mark where the namespace did not opt in."""
    for job in generated.jobs(60):
        body = api.must("POST", f"/apis/batch/v1/namespaces/{OTHER}/jobs", job, query=DRY_RUN)
        assert _new_mark(job, body) is None, job
        assert marks.mark_for_job(_as_admission_sees(job), {}) is None


def _known(api: Api, objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Takes away what the release does not know: it is gone before admission sees the object."""
    if api.must("GET", "/version")["minor"] == "36":
        for one in objects:
            spec = one["spec"].get("template", one)["spec"]
            spec.pop("evictionResponders", None)  # since 1.37
    return objects


def _stamp(sent: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any] | None:
    """What the policy added to the pod's spec, in the words of ``marks.stamp``."""
    gates = {gate["name"] for gate in stored.get("schedulingGates") or []}
    added = gates - {gate["name"] for gate in sent["spec"].get("schedulingGates", [])}
    if stored.get("schedulingGroup") == sent["spec"].get("schedulingGroup"):
        assert not added, "a gate without a group would never be lifted"
        return None
    assert added <= {marks.GATE}
    return {"podGroupName": stored["schedulingGroup"]["podGroupName"], "gate": marks.GATE in added}


def _as_admission_sees(job: dict[str, Any]) -> dict[str, Any]:
    """Fills in the defaults that come first (pkg/apis/batch/v1/defaults.go, Kubernetes v1.37.1)."""
    spec = job["spec"]
    defaults: dict[str, Any] = {"completionMode": "NonIndexed", "parallelism": 1}
    if "parallelism" not in spec and "completions" not in spec:
        defaults["completions"] = 1
    return {**job, "spec": {**defaults, **spec}}


def _new_mark(sent: dict[str, Any], stored: dict[str, Any]) -> str | None:
    before = (sent["spec"]["template"]["metadata"].get("labels") or {}).get(marks.GROUP)
    after: str | None = (stored["spec"]["template"]["metadata"].get("labels") or {}).get(marks.GROUP)
    return after if before is None else None


def _at_work(api: Api) -> bool:
    """Whether both policies act: they are compiled some time after they were created."""
    marked = {"metadata": {"name": "probe"}, "spec": _gang_job()}
    job = api.must("POST", f"/apis/batch/v1/namespaces/{OPTED_IN}/jobs", marked, query=DRY_RUN)
    labels = {
        marks.GROUP: "main",
        "batch.kubernetes.io/job-name": "probe",
        "batch.kubernetes.io/controller-uid": "12345678",
    }
    pod = {"metadata": {"name": "probe", "labels": labels}, "spec": _gang_job()["template"]["spec"]}
    stored = api.must("POST", f"/api/v1/namespaces/{OTHER}/pods", pod, query=DRY_RUN)
    return marks.GROUP in job["spec"]["template"]["metadata"].get("labels", {}) and bool(
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

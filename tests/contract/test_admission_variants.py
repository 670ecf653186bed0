"""Each variant of the admission policies, on their Python twin and on the real API servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.policy import marks
from tests.cluster import manifests
from tests.cluster.api import Api
from tests.cluster.cluster import Cluster
from tests.cluster.processes import until
from tests.contract.admission_variants import JOB, JOBS, MARK, PODS, job, pod

ADMISSION = Path(__file__).parents[2] / "eventing/admission"
ENABLED = {marks.NAMESPACE_SWITCH: "enabled"}
DRY_RUN = {"dryRun": "All"}
PRIORITY_OF_SYSTEM_CLASSES = 2_000_000_000


def _as_admission_sees(one: dict[str, Any]) -> dict[str, Any]:
    """The Priority plugin comes before the policies and puts in the number of the class."""
    system = one["spec"].get("priorityClassName", "").startswith("system-")
    return {**one, "spec": {**one["spec"], "priority": PRIORITY_OF_SYSTEM_CLASSES if system else 0}}


@pytest.mark.parametrize(("born", "stamp"), [pytest.param(*case, id=name) for name, case in PODS.items()])
def test_python_stamps_pods(born: dict[str, Any], stamp: dict[str, Any] | None) -> None:
    """The twin gives a pod the name and gate that the policy must give it."""
    assert marks.stamp(_as_admission_sees(born)) == stamp


@pytest.mark.parametrize(("made", "mark"), [pytest.param(*case, id=name) for name, case in JOBS.items()])
def test_python_marks_jobs(made: dict[str, Any], mark: str | None) -> None:
    """The twin marks a Job's template as the policy must, and only where the namespace opted in."""
    assert marks.mark_for_job(made, ENABLED) == mark
    assert marks.mark_for_job(made, {}) is None


@pytest.fixture(scope="module")
def api(real_server: Cluster) -> Iterator[Api]:
    """A server with the policies at work, one namespace that opted in and one that did not."""
    api = real_server.api
    policies = list(manifests.documents(sorted(ADMISSION.glob("*.yaml"))))
    namespaces = [_namespace("variants-in", ENABLED), _namespace("variants-out", {})]
    manifests.apply(api, [*namespaces, *policies])
    assert until(lambda: _at_work(api), 90), "the policies did not take effect"
    yield api
    for policy in policies:
        api.must("DELETE", manifests.path(policy))


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("born", "stamp"), [pytest.param(*case, id=name) for name, case in PODS.items()])
def test_the_policy_stamps_pods(api: Api, born: dict[str, Any], stamp: dict[str, Any] | None) -> None:
    """The API server gives the pod this name and gate, or leaves it as it came."""
    spec = _born(api, born)
    if stamp is None:
        assert spec.get("schedulingGroup") == born["spec"].get("schedulingGroup")
        assert "schedulingGates" not in spec
        return
    gates = [gate["name"] for gate in spec.get("schedulingGates") or []]
    assert spec["schedulingGroup"] == {"podGroupName": stamp["podGroupName"]}
    assert (marks.GATE in gates) == stamp["gate"]
    assert {gate["name"] for gate in born["spec"].get("schedulingGates", [])} == set(gates) - {marks.GATE}


@pytest.mark.real
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("made", "mark"), [pytest.param(*case, id=name) for name, case in JOBS.items()])
def test_the_policy_marks_jobs(api: Api, made: dict[str, Any], mark: str | None) -> None:
    """The API server puts this mark on the template, or leaves it, and always where nobody opted in."""
    before = made["spec"]["template"]["metadata"]["labels"].get(marks.GROUP)
    assert _mark(api, "variants-in", made) == (mark or before)
    assert _mark(api, "variants-out", made) == before


def _at_work(api: Api) -> bool:
    """Whether both policies act: each is compiled some time after it was created."""
    stamped, marked = _born(api, pod(MARK, JOB)), _mark(api, "variants-in", job())
    return "schedulingGroup" in stamped and marked == "main"


def _born(api: Api, sent: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = api.must("POST", "/api/v1/namespaces/variants-out/pods", sent, query=DRY_RUN)[
        "spec"
    ]
    return spec


def _mark(api: Api, namespace: str, sent: dict[str, Any]) -> str | None:
    stored = api.must("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", sent, query=DRY_RUN)
    mark: str | None = (stored["spec"]["template"]["metadata"].get("labels") or {}).get(marks.GROUP)
    return mark


def _namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}

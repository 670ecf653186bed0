"""Concurrent writes that are safe on the real server are safe on the embedded one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.api import STRATEGIC_PATCH, ApiResponse, KubernetesApi
from tests.contract.bodies import config_map, core, gated

NS = "default"
PODS = [f"pod-{number}" for number in range(10)]
GATES = [f"example.com/gate-{number}" for number in range(6)]


def _together(tasks: list[Callable[[], ApiResponse]]) -> list[ApiResponse]:
    with ThreadPoolExecutor(max_workers=8) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def _lift(api: KubernetesApi, pod: str, gate: str) -> Callable[[], ApiResponse]:
    body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]}}
    return lambda: api.request("PATCH", core(NS, "pods", pod), body, STRATEGIC_PATCH)


def _label(api: KubernetesApi, pod: str, label: str) -> Callable[[], ApiResponse]:
    body = {"metadata": {"labels": {label: "yes"}}}
    return lambda: api.request("PATCH", core(NS, "pods", pod), body, STRATEGIC_PATCH)


@pytest.mark.thorough
def test_gates_are_lifted_by_many_at_once(api: KubernetesApi) -> None:
    """Six removers and four labellers on the same pods: no error, no gate left, every label there."""
    for name in PODS:
        api.must("POST", core(NS, "pods"), gated(name, *GATES))
    labels = [f"label-{number}" for number in range(4)]
    tasks = [_lift(api, name, gate) for gate in GATES for name in PODS]
    tasks += [_label(api, name, label) for label in labels for name in PODS]
    assert {answer.status for answer in _together(tasks)} == {200}
    for pod in api.must("GET", core(NS, "pods"))["items"]:
        assert "schedulingGates" not in pod["spec"]
        assert set(pod["metadata"]["labels"]) == set(labels)


def test_one_of_many_creators_wins(api: KubernetesApi) -> None:
    """Of many creations of one name one succeeds and the others hear AlreadyExists."""
    answers = _together([lambda: api.request("POST", core(NS, "configmaps"), config_map())] * 8)
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    assert {answer.reason for answer in answers if not answer.ok} == {"AlreadyExists"}


def test_one_of_many_replacements_wins(api: KubernetesApi) -> None:
    """Of many replacements of one version one succeeds and the others hear Conflict."""
    made = api.must("POST", core(NS, "configmaps"), config_map())

    def replace(number: int) -> Callable[[], ApiResponse]:
        body = made | {"data": {"by": str(number)}}
        return lambda: api.request("PUT", core(NS, "configmaps", "one"), body)

    answers = _together([replace(number) for number in range(8)])
    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    assert {answer.reason for answer in answers if not answer.ok} == {"Conflict"}

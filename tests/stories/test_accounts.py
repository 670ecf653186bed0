"""The functions of the local stack write as their service accounts, judged by the policies of these."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from muster.local.stack import Stack, StackOptions
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import core, job, jobs

ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
PATCH_PODS = f"{ADMISSION}validatingadmissionpolicies/muster-pods-and-owners"
NAMESPACE = "team-a"


def _until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not (done := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return done


def test_a_policy_that_refuses_an_account_stops_its_function() -> None:
    """No gate is removed until the shipped policy is back; then the event that was refused comes again."""
    with Stack(StackOptions()) as stack:
        api = KubernetesApi(stack.url)
        shipped = _policy(api)
        refusing = {"expression": "false", "message": "never", "reason": "Forbidden"}
        api.must("PUT", PATCH_PODS, {**shipped, "spec": {**shipped["spec"], "validations": [refusing]}})
        labels = {"muster.dev/gang-jobs": "enabled"}
        api.must("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}})
        gang = job(completionMode="Indexed", parallelism=2, completions=2)
        api.must("POST", jobs(NAMESPACE), gang)
        assert _until(lambda: _refusals(stack, api))
        assert [bool(pod["spec"].get("schedulingGates")) for pod in _pods(api)] == [True, True]
        api.must("PUT", PATCH_PODS, {**_policy(api), "spec": shipped["spec"]})
        assert _until(lambda: all("nodeName" in pod["spec"] for pod in _pods(api)))


def _policy(api: KubernetesApi) -> dict[str, Any]:
    return dict(api.must("GET", PATCH_PODS))


def _pods(api: KubernetesApi) -> list[dict[str, Any]]:
    return list(api.must("GET", core(NAMESPACE, "pods"))["items"])


def _refusals(stack: Stack, api: KubernetesApi) -> bool:
    """Whether patch_pods has tried to remove the gates."""
    assert stack.server is not None
    return len(_pods(api)) == 2 and stack.server.calls()["muster-patch-pods", "patch", "pods"] > 0

"""The functions of the local stack write as their service accounts, judged by the policies of these."""

from __future__ import annotations

from muster.testing import RunningStack
from tests.cluster.api import KubernetesApi
from tests.contract.bodies import job

POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/muster-pods-and-owners"
NAMESPACE = "team-a"


def test_a_policy_that_refuses_an_account_stops_its_function() -> None:
    """No gate is removed until the shipped policy is back; then the event that was refused comes again."""
    with RunningStack() as stack:
        api = KubernetesApi(stack.url)
        shipped = api.must("GET", POLICY)
        refusing = {"expression": "false", "message": "never", "reason": "Forbidden"}
        api.must("PUT", POLICY, {**shipped, "spec": {**shipped["spec"], "validations": [refusing]}})
        stack.create_namespace(NAMESPACE)
        stack.create(job(completionMode="Indexed", parallelism=2, completions=2), NAMESPACE)
        stack.until(
            "patch_pods has tried to remove the gates",
            lambda: len(stack.all("Pod")) == 2 and stack.server.calls()["muster-patch-pods", "patch", "pods"],
        )
        assert any(pod["spec"].get("schedulingGates") for pod in stack.all("Pod"))
        assert not any("nodeName" in pod["spec"] for pod in stack.all("Pod"))
        api.must("PUT", POLICY, {**api.must("GET", POLICY), "spec": shipped["spec"]})
        stack.until("both are bound", lambda: all("nodeName" in pod["spec"] for pod in stack.all("Pod")))

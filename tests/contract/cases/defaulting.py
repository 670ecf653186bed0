"""What the server fills in, and the smaller rules of pods, Events and bindings."""

from __future__ import annotations

from tests.contract.bodies import core, job, jobs, pod
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


@case(releases=BOTH)
def pod_defaults(api: Conversation, ns: str) -> None:
    """A Pod gets its defaults: scheduler, restart policy, priority, tolerations, phase Pending."""
    found = api.must("POST", core(ns, "pods"), pod(volumes=[{"name": "v"}]))
    spec = found["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"], spec["priority"]) == (
        "default-scheduler",
        "Always",
        0,
    )
    assert found["status"]["phase"] == "Pending"
    assert found["metadata"]["generation"] == 1


@case(releases=BOTH)
def job_defaults(api: Conversation, ns: str) -> None:
    """A Job gets its defaults, a selector, and the labels of its pods."""
    found = api.must("POST", jobs(ns), job())
    spec, uid = found["spec"], found["metadata"]["uid"]
    assert (spec["parallelism"], spec["completions"], spec["completionMode"]) == (1, 1, "NonIndexed")
    assert (spec["suspend"], spec["backoffLimit"], spec["podReplacementPolicy"]) == (
        False,
        6,
        "TerminatingOrFailed",
    )
    assert spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert spec["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "job"


@case(releases=BOTH)
def event(api: Conversation, ns: str) -> None:
    """An Event about an object of its namespace is stored; of another it is refused."""
    body = {
        "metadata": {"generateName": "made-"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": ns, "apiVersion": "v1"},
        "reason": "Tested",
        "message": "a word",
        "type": "Normal",
    }
    api.must("POST", core(ns, "events"), body)
    body["involvedObject"] = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
    assert api.request("POST", core(ns, "events"), body).status == 422


@case(releases=BOTH)
def binding(api: Conversation, ns: str) -> None:
    """A binding puts a pod on a node and says so in its conditions."""
    api.must("POST", core(ns, "pods"), pod())
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "pod"},
        "target": {"kind": "Node", "name": "n"},
    }
    assert api.request("POST", core(ns, "pods", "pod") + "/binding", body).status == 201
    found = api.must("GET", core(ns, "pods", "pod"))
    assert found["spec"]["nodeName"] == "n"
    assert [c["type"] for c in found["status"]["conditions"]] == ["PodScheduled"]
    again = api.request("POST", core(ns, "pods", "pod") + "/binding", body)
    assert again.status == 409

"""Deleting: preconditions, grace, finalizers, and what follows for dependents and namespaces."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import (
    config_map,
    core,
    gated,
    groups,
    job,
    jobs,
    owner,
    pod,
    pod_group,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


def _gone(api: Conversation, path: str, seconds: float = 20) -> bool:
    return _comes(lambda: api.api.request("GET", path).status == 404, seconds)


def _comes(holds: Callable[[], bool], seconds: float = 20) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


@case(releases=BOTH)
def other_uid(api: Conversation, ns: str) -> None:
    """A uid precondition that does not hold is a conflict."""
    api.must("POST", core(ns, "configmaps"), config_map())
    body = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "11111111-1111-1111-1111-111111111111"},
    }
    assert api.request("DELETE", core(ns, "configmaps", "one"), body).reason == "Conflict"


@case(releases=BOTH)
def finalized(api: Conversation, ns: str) -> None:
    """An object with a finalizer stays, with a deletionTimestamp, until the finalizer is taken away."""
    api.must("POST", core(ns, "configmaps"), config_map(finalizers=["example.com/wait"]))
    path = core(ns, "configmaps", "one")
    found = api.must("DELETE", path)
    assert found["metadata"]["deletionTimestamp"]
    assert api.must("GET", path)["metadata"]["deletionGracePeriodSeconds"] == 0
    answer = api.request(
        "PATCH", path, {"metadata": {"finalizers": ["example.com/wait", "example.com/late"]}}, MERGE_PATCH
    )
    assert answer.status == 422
    assert answer.causes == [("FieldValueForbidden", "metadata.finalizers")]
    assert api.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH).status == 200
    assert api.request("GET", path).status == 404


@case(releases=BOTH)
def bound_pod(api: Conversation, ns: str) -> None:
    """A pod on a node stays, with a deletionTimestamp, until its kubelet deletes it for good."""
    api.must("POST", core(ns, "pods"), pod(nodeName="node-1"))
    found = api.must("DELETE", core(ns, "pods", "pod"))
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    assert api.request("GET", core(ns, "pods", "pod")).status == 200
    api.must(
        "DELETE",
        core(ns, "pods", "pod"),
        {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0},
    )
    assert api.request("GET", core(ns, "pods", "pod")).status == 404


@case(releases=BOTH, controllers=True)
def dependents(api: Conversation, ns: str) -> None:
    """Dependents go with their last owner; one that has another owner loses the reference only."""
    first = api.must("POST", core(ns, "configmaps"), config_map("first"))
    second = api.must("POST", core(ns, "configmaps"), config_map("second"))
    api.must("POST", core(ns, "configmaps"), config_map("one", ownerReferences=[owner(first)]))
    api.must(
        "POST", core(ns, "configmaps"), config_map("both", ownerReferences=[owner(first), owner(second)])
    )
    api.must("DELETE", core(ns, "configmaps", "first"))
    assert _gone(api, core(ns, "configmaps", "one"))
    path = core(ns, "configmaps", "both")
    assert _comes(lambda: len(api.api.must("GET", path)["metadata"]["ownerReferences"]) == 1)
    assert api.must("GET", path)["metadata"]["ownerReferences"][0]["name"] == "second"


@case(releases=BOTH, controllers=True)
def foreground(api: Conversation, ns: str) -> None:
    """A deletion in the foreground waits for dependents that block it."""
    first = api.must("POST", core(ns, "configmaps"), config_map("first"))
    blocking = owner(first, blockOwnerDeletion=True)
    held = config_map("one", ownerReferences=[blocking], finalizers=["example.com/wait"])
    api.must("POST", core(ns, "configmaps"), held)
    api.must("DELETE", core(ns, "configmaps", "first"), propagationPolicy="Foreground")
    path = core(ns, "configmaps", "one")
    assert _comes(lambda: "deletionTimestamp" in api.api.must("GET", path)["metadata"])
    assert api.request("GET", core(ns, "configmaps", "first")).status == 200
    api.must("PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert _gone(api, core(ns, "configmaps", "first"))


@case(releases=BOTH, controllers=True)
def orphaning_job(api: Conversation, ns: str) -> None:
    """A Job deleted without a policy leaves its pods behind, without the reference."""
    made = api.must("POST", jobs(ns), job())
    api.must("POST", core(ns, "pods"), pod("member", {"ownerReferences": [owner(made, controller=True)]}))
    api.must("DELETE", jobs(ns, "job"))
    assert _gone(api, jobs(ns, "job"))
    assert "ownerReferences" not in api.must("GET", core(ns, "pods", "member"))["metadata"]


@case(controllers=True)
def protected_group(api: Conversation, ns: str) -> None:
    """A PodGroup waits for every pod that names it and has not ended, gated ones included."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    api.must("POST", core(ns, "pods"), gated(schedulingGroup={"podGroupName": "group"}))
    api.must("DELETE", groups(ns, "podgroups", "group"))
    assert api.request("GET", groups(ns, "podgroups", "group")).status == 200
    assert api.request("POST", groups(ns, "podgroups"), pod_group()).reason == "AlreadyExists"
    api.must("DELETE", core(ns, "pods", "pod"))
    assert _gone(api, groups(ns, "podgroups", "group"))


@case(controllers=True)
def group_of_ended_pods(api: Conversation, ns: str) -> None:
    """Pods that have ended do not hold a PodGroup."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    api.must("POST", core(ns, "pods"), pod(schedulingGroup={"podGroupName": "group"}))
    api.must("DELETE", groups(ns, "podgroups", "group"))
    api.must("PATCH", core(ns, "pods", "pod") + "/status", {"status": {"phase": "Failed"}}, MERGE_PATCH)
    assert _gone(api, groups(ns, "podgroups", "group"))


@case(releases=BOTH, controllers=True)
def namespace(api: Conversation, ns: str) -> None:
    """A deleted namespace is terminating, refuses new objects, and goes when its content has gone."""
    api.must("POST", core(ns, "configmaps"), config_map(finalizers=["example.com/wait"]))
    found = api.must("DELETE", f"/api/v1/namespaces/{ns}")
    assert found["status"]["phase"] == "Terminating"
    answer = api.request("POST", core(ns, "pods"), pod())
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    path = core(ns, "configmaps", "one")
    assert _comes(lambda: "deletionTimestamp" in api.api.must("GET", path)["metadata"])
    api.must("PATCH", path, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    assert _gone(api, f"/api/v1/namespaces/{ns}", 40)

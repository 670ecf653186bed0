"""What of a Pod may change, and its scheduling gates and group."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.bodies import CLASSES, Object, core, gated, pod, priority_class
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
GROUP = {"podGroupName": "group"}


def _refused(api: Conversation, ns: str, spec: Object) -> None:
    assert api.request("PATCH", core(ns, "pods", "pod"), {"spec": spec}, MERGE_PATCH).status == 422


@case()
def group_kept(api: Conversation, ns: str) -> None:
    """SchedulingGroup is kept at creation, though no such PodGroup exists."""
    found = api.must("POST", core(ns, "pods"), pod(schedulingGroup=GROUP))
    assert found["spec"]["schedulingGroup"] == GROUP


@case(releases=BOTH)
def group_added(api: Conversation, ns: str) -> None:
    """SchedulingGroup cannot be added to a pod."""
    api.must("POST", core(ns, "pods"), pod())
    _refused(api, ns, {"schedulingGroup": GROUP})


@case()
def group_without_name(api: Conversation, ns: str) -> None:
    """An empty schedulingGroup is refused."""
    assert api.request("POST", core(ns, "pods"), pod(schedulingGroup={})).status == 422


@case(releases=BOTH)
def gate_condition(api: Conversation, ns: str) -> None:
    """A gated pod is born with PodScheduled=False, reason SchedulingGated."""
    found = api.must("POST", core(ns, "pods"), gated())
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


@case(releases=BOTH)
def gates_one_by_one(api: Conversation, ns: str) -> None:
    """Gates are lifted one by one, each by its owner, and generation counts."""
    made = api.must("POST", core(ns, "pods"), gated("pod", "example.com/a", "example.com/b"))
    for name in ("example.com/a", "example.com/b"):
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}
        found = api.must("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert "schedulingGates" not in found["spec"]
    assert found["metadata"]["generation"] == made["metadata"]["generation"] + 2


@case(releases=BOTH)
def priority_of_class(api: Conversation, ns: str) -> None:
    """A pod takes its priority from its PriorityClass."""
    api.must("POST", CLASSES, priority_class(f"{ns}-hi", 1000))
    found = api.must("POST", core(ns, "pods"), pod(priorityClassName=f"{ns}-hi"))
    assert found["spec"]["priority"] == 1000

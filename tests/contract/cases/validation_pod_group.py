"""PodGroups: what is stamped on them, what is refused, what may change."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.bodies import (
    CLASSES,
    FINALIZER,
    Object,
    composite_group,
    condition,
    gang,
    groups,
    pod_group,
    priority_class,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
REFERENCE = {"workloadName": "work", "templateName": "main"}


def _refused(api: Conversation, ns: str, *fields: str, **spec: Any) -> None:
    answer = api.request("POST", groups(ns, "podgroups"), pod_group(**spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(fields) <= {field for _, field in answer.causes}


def _patch(api: Conversation, ns: str, spec: Object) -> tuple[int, list[tuple[str, str]]]:
    answer = api.request("PATCH", groups(ns, "podgroups", "group"), {"spec": spec}, MERGE_PATCH)
    return answer.status, answer.causes


@case()
def stamped(api: Conversation, ns: str) -> None:
    """A PodGroup gets a finalizer, disruption mode single, priority 0, an empty status, but no generation."""
    found = api.must("POST", groups(ns, "podgroups"), pod_group())
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert found["spec"]["disruptionMode"] == {"single": {}}
    assert found["spec"]["priority"] == 0
    assert found["status"] == {}
    assert "generation" not in found["metadata"]


@case()
def status_written(api: Conversation, ns: str) -> None:
    """The status endpoint writes conditions and nothing else."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    body = {
        "metadata": {"labels": {"a": "b"}, "finalizers": None},
        "spec": {"schedulingPolicy": gang(9)},
        "status": {"conditions": [condition("PodGroupInitiallyScheduled")]},
    }
    found = api.must("PATCH", groups(ns, "podgroups", "group") + "/status", body, MERGE_PATCH)
    assert found["status"]["conditions"][0]["type"] == "PodGroupInitiallyScheduled"
    assert found["spec"]["schedulingPolicy"] == gang(2)
    assert "labels" not in found["metadata"]
    assert found["metadata"]["finalizers"] == [FINALIZER]


@case()
def conditions_merged(api: Conversation, ns: str) -> None:
    """A strategic merge patch of the status keeps other people's conditions."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    path = groups(ns, "podgroups", "group") + "/status"
    for kind in ("One", "Two"):
        found = api.must("PATCH", path, {"status": {"conditions": [condition(kind)]}}, STRATEGIC_PATCH)
    assert {c["type"] for c in found["status"]["conditions"]} == {"One", "Two"}


@case()
def no_policy(api: Conversation, ns: str) -> None:
    """A PodGroup has exactly one policy."""
    _refused(api, ns, "spec.schedulingPolicy", schedulingPolicy={})
    both = {"basic": {}, "gang": {"minCount": 1}}
    _refused(api, ns, "spec.schedulingPolicy", schedulingPolicy=both)


@case()
def min_count_changes(api: Conversation, ns: str) -> None:
    """MinCount may go up and down, not to 0."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    assert _patch(api, ns, {"schedulingPolicy": gang(9)})[0] == 200
    assert _patch(api, ns, {"schedulingPolicy": gang(1)})[0] == 200
    assert _patch(api, ns, {"schedulingPolicy": gang(0)})[0] == 422


@case()
def variant_frozen(api: Conversation, ns: str) -> None:
    """A gang cannot become basic."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    status, causes = _patch(api, ns, {"schedulingPolicy": {"gang": None, "basic": {}}})
    assert status == 422
    assert causes == [
        ("FieldValueInvalid", "spec.schedulingPolicy.basic"),
        ("FieldValueInvalid", "spec.schedulingPolicy.gang"),
    ]


@case()
def spec_frozen(api: Conversation, ns: str) -> None:
    """Everything else of a PodGroup's spec is immutable."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    changes: list[Object] = [
        {"workloadRef": REFERENCE},
        {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
        {"disruptionMode": {"single": None, "all": {}}},
        {"priorityClassName": "x"},
        {"priority": 5},
    ]
    for change in changes:
        status, causes = _patch(api, ns, change)
        assert status == 422
        assert causes == [("FieldValueInvalid", f"spec.{next(iter(change))}")]


@case()
def priority_of_class(api: Conversation, ns: str) -> None:
    """A PodGroup takes its priority from its PriorityClass; another number is forbidden."""
    api.must("POST", CLASSES, priority_class(f"{ns}-hi", 1000))
    found = api.must("POST", groups(ns, "podgroups"), pod_group(priorityClassName=f"{ns}-hi"))
    assert found["spec"]["priority"] == 1000
    body = pod_group("other", priorityClassName=f"{ns}-hi", priority=7)
    assert api.request("POST", groups(ns, "podgroups"), body).reason == "Forbidden"


@case()
def deleted_slowly(api: Conversation, ns: str) -> None:
    """A deleted PodGroup answers with itself and its deletionTimestamp: the finalizer has to go first."""
    api.must("POST", groups(ns, "podgroups"), pod_group())
    found = api.must("DELETE", groups(ns, "podgroups", "group"))
    assert found["kind"] == "PodGroup"
    assert found["metadata"]["deletionTimestamp"]


@case()
def composite_stamped(api: Conversation, ns: str) -> None:
    """A CompositePodGroup gets disruption mode and priority, but no finalizer and no generation."""
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    found = api.must("POST", path, composite_group())
    assert found["spec"]["disruptionMode"] == {"single": {}}
    assert found["spec"]["priority"] == 0
    assert "finalizers" not in found["metadata"]
    assert "generation" not in found["metadata"]


@case()
def composite_needs_reference(api: Conversation, ns: str) -> None:
    """A CompositePodGroup needs a workloadRef and a policy."""
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    assert api.request("POST", path, composite_group(workloadRef=None)).status == 422
    assert api.request("POST", path, composite_group(schedulingPolicy={})).status == 422


@case()
def composite_frozen(api: Conversation, ns: str) -> None:
    """A CompositePodGroup's spec is immutable, minGroupCount included."""
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    api.must("POST", path, composite_group())
    changes: list[Object] = [
        {"schedulingPolicy": {"gang": {"minGroupCount": 3}}},
        {"parentCompositePodGroupName": "parent"},
        {"workloadRef": {"workloadName": "other", "templateName": "root"}},
    ]
    for change in changes:
        assert api.request("PATCH", f"{path}/composite", {"spec": change}, MERGE_PATCH).status == 422

"""CompositePodGroups."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import (
    Object,
    composite_group,
    condition,
    groups,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all


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
    answer = api.request("POST", path, composite_group(workloadRef=None))
    assert answer.status == 422
    assert answer.causes == [("FieldValueRequired", "spec.workloadRef")]
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
        answer = api.request("PATCH", f"{path}/composite", {"spec": change}, MERGE_PATCH)
        assert answer.status == 422
        assert answer.causes == [("FieldValueInvalid", f"spec.{next(iter(change))}")]


@case()
def composite_only_alpha(api: Conversation, ns: str) -> None:
    """CompositePodGroups are not served in v1beta1."""
    assert api.request("GET", groups(ns, "compositepodgroups")).status == 404


@case()
def composite_status(api: Conversation, ns: str) -> None:
    """A CompositePodGroup has a status endpoint with conditions."""
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    api.must("POST", path, composite_group())
    body = {"status": {"conditions": [condition("CompositePodGroupInitiallyScheduled", "False")]}}
    found = api.must("PATCH", f"{path}/composite/status", body, MERGE_PATCH)
    assert found["status"]["conditions"][0]["status"] == "False"

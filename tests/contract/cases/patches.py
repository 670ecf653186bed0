"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from tests.cluster.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.bodies import config_map, core, gated, pod
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


@case(releases=BOTH)
def merge(api: Conversation, ns: str) -> None:
    """A merge patch sets, and with null removes."""
    api.must("POST", core(ns, "configmaps"), config_map(data={"a": "1", "b": "2"}))
    found = api.must("PATCH", core(ns, "configmaps", "one"), {"data": {"a": None, "c": "3"}}, MERGE_PATCH)
    assert found["data"] == {"b": "2", "c": "3"}


@case(releases=BOTH)
def json(api: Conversation, ns: str) -> None:
    """A JSON patch tests, adds, replaces and removes."""
    api.must("POST", core(ns, "configmaps"), config_map(data={"a": "1", "b": "2"}))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
    ]
    found = api.must("PATCH", core(ns, "configmaps", "one"), operations, JSON_PATCH)
    assert found["data"] == {"a": "9"}
    assert found["metadata"]["labels"] == {"x": "y"}


@case(releases=BOTH)
def strategic_delete(api: Conversation, ns: str) -> None:
    """$patch: delete removes one gate by name and leaves the others; labels may go along."""
    api.must("POST", core(ns, "pods"), gated("pod", "example.com/a", "example.com/b"))
    gone = [{"$patch": "delete", "name": "example.com/a"}]
    body = {"metadata": {"labels": {"seen": "yes"}}, "spec": {"schedulingGates": gone}}
    found = api.must("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert found["spec"]["schedulingGates"] == [{"name": "example.com/b"}]
    assert found["metadata"]["labels"] == {"seen": "yes"}


@case(releases=BOTH)
def strategic_delete_absent(api: Conversation, ns: str) -> None:
    """$patch: delete of a gate that is not there changes nothing, not even the resourceVersion."""
    made = api.must("POST", core(ns, "pods"), gated("pod", "example.com/b"))
    body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/a"}]}}
    found = api.must("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


@case(releases=BOTH)
def strategic_uid(api: Conversation, ns: str) -> None:
    """A strategic merge patch with another pod's uid is refused with 422 on metadata.uid."""
    api.must("POST", core(ns, "pods"), gated())
    body = {
        "metadata": {"uid": "11111111-1111-1111-1111-111111111111"},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/wait"}]},
    }
    answer = api.request("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.uid")]
    assert "metadata.uid" in answer.message  # which Muster reads: see READ_WORDS in answers.py


@case(releases=BOTH)
def strategic_conditions(api: Conversation, ns: str) -> None:
    """A strategic merge patch merges conditions of a pod's status by type; a merge patch replaces them."""
    api.must("POST", core(ns, "pods"), pod())
    path = core(ns, "pods", "pod") + "/status"
    for kind in ("First", "Second"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        found = api.must("PATCH", path, body, STRATEGIC_PATCH)
    assert {c["type"] for c in found["status"]["conditions"]} == {"First", "Second"}
    body = {"status": {"conditions": [{"type": "Third", "status": "True"}]}}
    found = api.must("PATCH", path, body, MERGE_PATCH)
    assert [c["type"] for c in found["status"]["conditions"]] == ["Third"]

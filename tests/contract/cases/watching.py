"""Watches."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import core, pod
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all


def _version(api: Conversation, path: str) -> str:
    found: str = api.must("GET", path)["metadata"]["resourceVersion"]
    return found


@case()
def from_a_version(api: Conversation, ns: str) -> None:
    """A watch from a resourceVersion sends the later changes, in order."""
    version = _version(api, core(ns, "pods"))
    api.must("POST", core(ns, "pods"), pod())
    api.must("PATCH", core(ns, "pods", "pod"), {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    api.must("DELETE", core(ns, "pods", "pod"))
    events = list(api.watch(core(ns, "pods"), {"resourceVersion": version, "timeoutSeconds": "1"}))
    deletion = ["MODIFIED", "DELETED"]  # a pod's deletion is always announced by its deletionTimestamp
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", *deletion]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


@case(releases=("1.37", "1.36"))
def selected(api: Conversation, ns: str) -> None:
    """With a selector, entering is ADDED and leaving is DELETED."""
    version = _version(api, core(ns, "pods"))
    api.must("POST", core(ns, "pods"), pod())
    for value in ("yes", "yes", "no"):
        body = {"metadata": {"labels": {"chosen": value}, "annotations": {"turn": value}}}
        api.must("PATCH", core(ns, "pods", "pod"), body, MERGE_PATCH)
    api.must("PATCH", core(ns, "pods", "pod"), {"metadata": {"labels": {"chosen": "yes"}}}, MERGE_PATCH)
    api.must("PATCH", core(ns, "pods", "pod"), {"metadata": {"labels": {"other": "1"}}}, MERGE_PATCH)
    query = {"resourceVersion": version, "timeoutSeconds": "1", "labelSelector": "chosen=yes"}
    events = list(api.watch(core(ns, "pods"), query))
    assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED", "MODIFIED"]
    left = events[1]["object"]["metadata"]
    assert left["labels"] == {"chosen": "yes"}, "the object as it was when it was last selected"
    assert int(left["resourceVersion"]) > int(events[0]["object"]["metadata"]["resourceVersion"])

"""Lists: pages and selectors."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import config_map, core, pod
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


@case(releases=BOTH)
def paged(api: Conversation, ns: str) -> None:
    """Limit cuts a list and continue goes on with the rest."""
    for name in ("a", "b", "c"):
        api.must("POST", core(ns, "pods"), pod(name))
    first = api.must("GET", core(ns, "pods"), limit="2")
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 1
    rest = api.must("GET", core(ns, "pods"), limit="2", **{"continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]


@case(releases=BOTH)
def listed_exactly(api: Conversation, ns: str) -> None:
    """A list at the exact resourceVersion of an object has what existed then, of other kinds too."""
    first = api.must("POST", core(ns, "pods"), pod("a", {"labels": {"tier": "x"}}))
    second = api.must("POST", core(ns, "configmaps"), config_map("b"))
    api.must("PATCH", core(ns, "pods", "a"), {"metadata": {"labels": {"tier": "y"}}}, MERGE_PATCH)
    api.must("POST", core(ns, "pods"), pod("c"))
    api.must("DELETE", core(ns, "configmaps", "b"))
    for made, pods in ((first, ["a"]), (second, ["a"])):
        exact = {"resourceVersion": made["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
        found = api.must("GET", core(ns, "pods"), limit="500", **exact)
        assert [item["metadata"]["name"] for item in found["items"]] == pods
        assert found["items"][0]["metadata"]["labels"] == {"tier": "x"}
        assert found["metadata"]["resourceVersion"] == exact["resourceVersion"]
        assert api.must("GET", core(ns, "pods"), labelSelector="tier=y", **exact)["items"] == []
    names = [item["metadata"]["name"] for item in api.must("GET", core(ns, "configmaps"), **exact)["items"]]
    assert "b" in names


@case(releases=BOTH)
def selected_by_label(api: Conversation, ns: str) -> None:
    """Label selectors choose by equality, sets, presence and absence."""
    for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y"}), ("c", {})):
        api.must("POST", core(ns, "pods"), pod(name, {"labels": labels}))
    wanted = {
        "tier=x": ["a"],
        "tier==x": ["a"],
        "tier!=x": ["b", "c"],
        "tier in (x,y)": ["a", "b"],
        "tier notin (x)": ["b", "c"],
        "tier": ["a", "b"],
        "!tier": ["c"],
        "tier,tier!=y": ["a"],
    }
    for selector, names in wanted.items():
        found = api.must("GET", core(ns, "pods"), labelSelector=selector)["items"]
        assert [item["metadata"]["name"] for item in found] == names, selector

"""Composite templates: trees of groups."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import Object, composite, gang, groups, template, workload
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all


def _refused(api: Conversation, ns: str, body: Object, *fields: str, version: str = "v1beta1") -> None:
    answer = api.request("POST", groups(ns, "workloads", version=version), body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(fields) <= {field for _, field in answer.causes}


def _patched(api: Conversation, ns: str, templates: list[Object]) -> tuple[int, list[tuple[str, str]]]:
    body = {"spec": {"podGroupTemplates": templates}}
    answer = api.request("PATCH", groups(ns, "workloads", "work"), body, MERGE_PATCH)
    return answer.status, answer.causes


@case()
def tree(api: Conversation, ns: str) -> None:
    """A tree of four levels is accepted, five are refused."""
    deep = template("leaf")
    node = composite("c3", deep)
    for name in ("c2", "c1"):
        node = {"name": name, "schedulingPolicy": {"basic": {}}, "compositePodGroupTemplates": [node]}
    found = api.must("POST", groups(ns, "workloads"), workload(compositePodGroupTemplates=[node]))
    assert found["spec"]["podGroupTemplates"] is None
    deeper = {"name": "c0", "schedulingPolicy": {"basic": {}}, "compositePodGroupTemplates": [node]}
    _refused(
        api,
        ns,
        workload("deep", compositePodGroupTemplates=[deeper]),
        "spec.compositePodGroupTemplates[0]",
    )


@case()
def tree_names(api: Conversation, ns: str) -> None:
    """Names are unique in the whole tree."""
    body = workload(compositePodGroupTemplates=[composite("a", template("a"))])
    _refused(api, ns, body, "spec.compositePodGroupTemplates[0].podGroupTemplates[0].name")
    two = [composite("a", template("x")), composite("b", template("x"))]
    _refused(
        api,
        ns,
        workload(compositePodGroupTemplates=two),
        "spec.compositePodGroupTemplates[1].podGroupTemplates[0].name",
    )


@case()
def tree_needs_leaves(api: Conversation, ns: str) -> None:
    """A composite template has at least one child."""
    _refused(
        api,
        ns,
        workload(compositePodGroupTemplates=[composite("a")]),
        "spec.compositePodGroupTemplates[0]",
    )


@case()
def tree_priority(api: Conversation, ns: str) -> None:
    """One priority holds in the whole tree."""
    body = workload(compositePodGroupTemplates=[composite("a", template("b", priorityClassName="x"))])
    _refused(api, ns, body, "spec")


@case()
def tree_one_child(api: Conversation, ns: str) -> None:
    """A composite with one child is accepted; its minGroupCount is at least 1."""
    api.must(
        "POST", groups(ns, "workloads"), workload(compositePodGroupTemplates=[composite("a", template("b"))])
    )
    none = composite("a", template("b"), schedulingPolicy={"gang": {"minGroupCount": 0}})
    where = "spec.compositePodGroupTemplates[0].schedulingPolicy.gang.minGroupCount"
    _refused(api, ns, workload("none", compositePodGroupTemplates=[none]), where)


@case()
def tree_counts_change(api: Conversation, ns: str) -> None:
    """MinCount and minGroupCount inside a tree may change, children may not come."""
    api.must(
        "POST", groups(ns, "workloads"), workload(compositePodGroupTemplates=[composite("a", template("b"))])
    )
    path = groups(ns, "workloads", "work")
    policy = {"gang": {"minGroupCount": 3}}
    changed = composite("a", template("b", schedulingPolicy=gang(9)), schedulingPolicy=policy)
    api.must("PATCH", path, {"spec": {"compositePodGroupTemplates": [changed]}}, MERGE_PATCH)
    more = composite("a", template("b"), template("c"))
    answer = api.request("PATCH", path, {"spec": {"compositePodGroupTemplates": [more]}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [
        ("FieldValueForbidden", "spec.compositePodGroupTemplates[0].podGroupTemplates[1]")
    ]

"""Workloads: templates, trees, and what may change."""

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
def stored(api: Conversation, ns: str) -> None:
    """A Workload has neither status nor generation, and null constraints in its templates."""
    found = api.must("POST", groups(ns, "workloads"), workload())
    assert "status" not in found
    assert "generation" not in found["metadata"]
    assert found["spec"]["podGroupTemplates"][0]["schedulingConstraints"] is None


@case()
def eight(api: Conversation, ns: str) -> None:
    """Eight templates are accepted, nine are not."""
    api.must("POST", groups(ns, "workloads"), workload("eight", *(template(f"t{i}") for i in range(8))))
    body = workload("nine", *(template(f"t{i}") for i in range(9)))
    _refused(api, ns, body, "spec.podGroupTemplates")


@case()
def same_names(api: Conversation, ns: str) -> None:
    """Two templates of one name are refused."""
    _refused(api, ns, workload("work", template("a"), template("a")), "spec.podGroupTemplates[1]")


@case()
def bad_names(api: Conversation, ns: str) -> None:
    """A template's name is a DNS label and must be there."""
    _refused(api, ns, workload("work", template("a.b")), "spec.podGroupTemplates[0].name")
    _refused(api, ns, workload("work", template("")), "spec.podGroupTemplates[0].name")
    _refused(api, ns, workload("work", template("a" * 64)), "spec.podGroupTemplates[0].name")


@case()
def no_policy(api: Conversation, ns: str) -> None:
    """A template has exactly one policy."""
    _refused(api, ns, workload("work", {"name": "main"}), "spec.podGroupTemplates[0].schedulingPolicy")
    both = template(schedulingPolicy={"basic": {}, "gang": {"minCount": 1}})
    _refused(api, ns, workload("work", both), "spec.podGroupTemplates[0].schedulingPolicy")


@case()
def min_count_changes(api: Conversation, ns: str) -> None:
    """MinCount of a template may change."""
    api.must("POST", groups(ns, "workloads"), workload())
    body = {"spec": {"podGroupTemplates": [template(schedulingPolicy=gang(5))]}}
    found = api.must("PATCH", groups(ns, "workloads", "work"), body, MERGE_PATCH)
    assert found["spec"]["podGroupTemplates"][0]["schedulingPolicy"] == gang(5)


@case()
def template_added(api: Conversation, ns: str) -> None:
    """A template cannot be added."""
    api.must("POST", groups(ns, "workloads"), workload())
    status, causes = _patched(api, ns, [template(), template("second")])
    assert status == 422
    assert causes == [("FieldValueForbidden", "spec.podGroupTemplates[1]")]


@case()
def template_removed(api: Conversation, ns: str) -> None:
    """A template cannot be removed."""
    api.must("POST", groups(ns, "workloads"), workload("work", template("a"), template("b")))
    status, causes = _patched(api, ns, [template("a")])
    assert status == 422
    assert causes == [("FieldValueForbidden", "spec.podGroupTemplates")]


@case()
def variant_frozen(api: Conversation, ns: str) -> None:
    """A gang cannot become basic, nor basic a gang."""
    api.must("POST", groups(ns, "workloads"), workload())
    assert _patched(api, ns, [template(schedulingPolicy={"basic": {}})])[0] == 422
    api.must("POST", groups(ns, "workloads"), workload("second", template(schedulingPolicy={"basic": {}})))
    body = {"spec": {"podGroupTemplates": [template()]}}
    assert api.request("PATCH", groups(ns, "workloads", "second"), body, MERGE_PATCH).status == 422


@case()
def template_fields_frozen(api: Conversation, ns: str) -> None:
    """Everything else of a template is immutable."""
    api.must("POST", groups(ns, "workloads"), workload())
    changes: list[Object] = [
        {"schedulingConstraints": {"topology": [{"key": "rack"}]}},
        {"disruptionMode": {"all": {}}},
        {"priorityClassName": "x"},
        {"priority": 5},
    ]
    for change in changes:
        status, causes = _patched(api, ns, [template(**change)])
        assert status == 422
        assert causes == [("FieldValueInvalid", f"spec.podGroupTemplates[0].{next(iter(change))}")]


@case()
def two_versions(api: Conversation, ns: str) -> None:
    """A Workload is the same object in v1beta1 and v1alpha3."""
    made = api.must("POST", groups(ns, "workloads"), workload())
    found = api.must("GET", groups(ns, "workloads", "work", "v1alpha3"))
    assert found["apiVersion"] == "scheduling.k8s.io/v1alpha3"
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    api.must("DELETE", groups(ns, "workloads", "work", "v1alpha3"))
    assert api.request("GET", groups(ns, "workloads", "work")).status == 404


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
        api, ns, workload("deep", compositePodGroupTemplates=[deeper]), "spec.compositePodGroupTemplates[0]"
    )


@case()
def tree_needs_leaves(api: Conversation, ns: str) -> None:
    """A composite template has at least one child."""
    _refused(
        api, ns, workload(compositePodGroupTemplates=[composite("a")]), "spec.compositePodGroupTemplates[0]"
    )


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

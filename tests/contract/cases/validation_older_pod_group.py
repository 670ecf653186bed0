"""PodGroups of Kubernetes 1.36."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import FINALIZER, Object, gang, groups, pod_group, template, workload
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all


@case(releases=("1.36",))
def older(api: Conversation, ns: str) -> None:
    """In v1alpha2 a PodGroup's spec is immutable, minCount included."""
    path = groups(ns, "podgroups", version="v1alpha2")
    api.must("POST", groups(ns, "workloads", version="v1alpha2"), workload(version="v1alpha2"))
    reference = {"workload": {"workloadName": "work", "podGroupTemplateName": "main"}}
    found = api.must("POST", path, pod_group(version="v1alpha2", podGroupTemplateRef=reference))
    assert found["metadata"]["finalizers"] == [FINALIZER]
    answer = api.request("PATCH", f"{path}/group", {"spec": {"schedulingPolicy": gang(5)}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.schedulingPolicy")]


@case(releases=("1.36",))
def older_refused(api: Conversation, ns: str) -> None:
    """In v1alpha2 a PodGroup has one policy and a whole reference."""
    path = groups(ns, "podgroups", version="v1alpha2")
    specs: tuple[Object, ...] = (
        {"schedulingPolicy": {}},
        {"schedulingPolicy": gang(0)},
        {"podGroupTemplateRef": {"workload": {"workloadName": "work"}}},
        {"podGroupTemplateRef": {}},
    )
    for spec in specs:
        assert api.request("POST", path, pod_group(version="v1alpha2", **spec)).status == 422


@case(releases=("1.36",))
def older_reference_checked(api: Conversation, ns: str) -> None:
    """In v1alpha2 alone a PodGroup's Workload and template have to exist."""
    path = groups(ns, "podgroups", version="v1alpha2")
    reference = {"workload": {"workloadName": "work", "podGroupTemplateName": "other"}}
    body = pod_group(version="v1alpha2", podGroupTemplateRef=reference)
    assert api.request("POST", path, body).reason == "Forbidden"
    api.must("POST", groups(ns, "workloads", version="v1alpha2"), workload(version="v1alpha2"))
    assert api.request("POST", path, body).reason == "Forbidden"


@case(releases=("1.36",))
def older_without_preemption(api: Conversation, ns: str) -> None:
    """In v1alpha2 priority and disruptionMode keep to their defaults while WorkloadAwarePreemption is off."""
    path = groups(ns, "podgroups", version="v1alpha2")
    body = pod_group(version="v1alpha2", priorityClassName="system-node-critical", disruptionMode="PodGroup")
    found = api.must("POST", path, body)["spec"]
    assert "priority" not in found
    assert "priorityClassName" not in found
    assert found["disruptionMode"] == "Pod"


def _refused(api: Conversation, ns: str, body: Object, *fields: str, version: str = "v1beta1") -> None:
    answer = api.request("POST", groups(ns, "workloads", version=version), body)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(fields) <= {field for _, field in answer.causes}


@case(releases=("1.36",))
def older_workload(api: Conversation, ns: str) -> None:
    """In v1alpha2 a Workload's templates are immutable, minCount included."""
    path = groups(ns, "workloads", version="v1alpha2")
    api.must("POST", path, workload(version="v1alpha2"))
    body = {"spec": {"podGroupTemplates": [template(schedulingPolicy=gang(5))]}}
    assert api.request("PATCH", f"{path}/work", body, MERGE_PATCH).status == 422


@case(releases=("1.36",))
def older_workload_refused(api: Conversation, ns: str) -> None:
    """In v1alpha2 a Workload needs templates, with names and one policy each."""
    for body in (
        workload(version="v1alpha2", podGroupTemplates=[]),
        workload("work", {"name": "main"}, version="v1alpha2"),
        workload("work", template("a.b"), version="v1alpha2"),
        workload("work", template(schedulingPolicy=gang(0)), version="v1alpha2"),
        workload("work", template("a"), template("a"), version="v1alpha2"),
        workload("work", *(template(f"t{i}") for i in range(9)), version="v1alpha2"),
    ):
        _refused(api, ns, body, version="v1alpha2")

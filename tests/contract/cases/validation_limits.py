"""Names and lengths of what Muster makes, and how many of them there may be."""

from __future__ import annotations

from tests.cluster.api import ApiResponse
from tests.contract.bodies import (
    composite,
    groups,
    pod_group,
    template,
    workload,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all


def _refused(answer: ApiResponse, *fields: str) -> None:
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(fields) <= {field for _, field in answer.causes}


@case()
def reference_names(api: Conversation, ns: str) -> None:
    """A group refers to a Workload by a DNS subdomain, to a template by a DNS label."""
    path = groups(ns, "podgroups")
    good = {"workloadName": "a.b", "templateName": "a-b"}
    api.must("POST", path, pod_group("good", workloadRef=good))
    for field, bad in (("workloadName", "a_b"), ("templateName", "a.b")):
        answer = api.request("POST", path, pod_group(workloadRef={**good, field: bad}))
        _refused(answer, f"spec.workloadRef.{field}")
    answer = api.request("POST", path, pod_group(workloadRef=good, parentCompositePodGroupName="a_b"))
    _refused(answer, "spec.parentCompositePodGroupName")


@case()
def eight_children(api: Conversation, ns: str) -> None:
    """A composite template has up to eight children of each kind, and there are up to eight of them."""
    path = groups(ns, "workloads")
    leaves = [template(f"leaf-{number}") for number in range(9)]
    inner = [composite(f"inner-{number}", template(f"inner-leaf-{number}")) for number in range(9)]
    outer = [composite(f"outer-{number}", template(f"outer-leaf-{number}")) for number in range(9)]
    full = composite("root", *leaves[:8], compositePodGroupTemplates=inner[:8])
    api.must("POST", path, workload("full", compositePodGroupTemplates=[full]))
    api.must("POST", path, workload("eight", compositePodGroupTemplates=outer[:8]))

    where = "spec.compositePodGroupTemplates"
    nine = workload(compositePodGroupTemplates=outer)
    _refused(api.request("POST", path, nine), where)
    nine = workload(compositePodGroupTemplates=[composite("root", *leaves)])
    _refused(api.request("POST", path, nine), f"{where}[0].podGroupTemplates")
    nine = workload(compositePodGroupTemplates=[composite("root", compositePodGroupTemplates=inner)])
    _refused(api.request("POST", path, nine), f"{where}[0].compositePodGroupTemplates")

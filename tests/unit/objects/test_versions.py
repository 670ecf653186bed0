"""The served version of scheduling.k8s.io, and the differences between v1beta1 and v1alpha2."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from muster.objects.resources import SchedulingApi
from muster.objects.versions import choose, from_served, to_served

BOTH = {"workloads", "podgroups", "podgroups/status"}
OLD = SchedulingApi("v1alpha2", composites=False)

Object = dict[str, Any]


def served(**versions: set[str]) -> frozenset[str]:
    """What discovery lists, as `v1beta1/podgroups`."""
    return frozenset(f"{version}/{plural}" for version, plurals in versions.items() for plural in plurals)


@pytest.mark.parametrize(
    ("listed", "api"),
    [
        (served(v1beta1=BOTH, v1alpha3={*BOTH, "compositepodgroups"}), SchedulingApi("v1beta1")),
        (served(v1beta1=BOTH, v1alpha2=BOTH, v1alpha3=BOTH), SchedulingApi("v1beta1", composites=False)),
        (served(v1alpha2=BOTH), SchedulingApi("v1alpha2", composites=False)),
        (served(v1alpha3=BOTH), SchedulingApi("", composites=False)),
        (served(v1beta1={"workloads"}, v1alpha2={"podgroups"}), SchedulingApi("", composites=False)),
    ],
)
def test_choose(listed: frozenset[str], api: SchedulingApi) -> None:
    """The newest version that has both kinds; composites are asked for by themselves."""
    assert choose(listed) == api


WORKLOAD: Object = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "Workload",
    "metadata": {"name": "llama", "ownerReferences": [{"apiVersion": "batch/v1", "name": "llama"}]},
    "spec": {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "llama"},
        "podGroupTemplates": [
            {"name": "main", "disruptionMode": {"all": {}}, "schedulingConstraints": {"topology": []}},
            {"name": "init", "schedulingPolicy": {"basic": {}}, "disruptionMode": {"single": {}}},
            {"name": "plain", "schedulingPolicy": {"basic": {}}},
        ],
    },
}
POD_GROUP: Object = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {
        "name": "llama-main-33333333",
        "ownerReferences": [
            {"apiVersion": "batch/v1", "kind": "Job", "name": "llama", "uid": "1"},
            {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "name": "llama", "uid": "2"},
        ],
    },
    "spec": {
        "workloadRef": {"workloadName": "llama", "templateName": "main"},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": {"single": {}},
    },
    "status": {"conditions": [{"type": "PodGroupInitiallyScheduled"}, {"type": "DisruptionTarget"}]},
}


def test_a_workload_of_1_36() -> None:
    """Its disruption modes are words; all else is the same."""
    old = to_served(OLD, WORKLOAD)
    assert old["apiVersion"] == "scheduling.k8s.io/v1alpha2"
    modes = [template.get("disruptionMode") for template in old["spec"]["podGroupTemplates"]]
    assert modes == ["PodGroup", "Pod", None]
    assert old["spec"]["podGroupTemplates"][0]["schedulingConstraints"] == {"topology": []}
    assert old["metadata"] == WORKLOAD["metadata"]


def test_a_pod_group_of_1_36() -> None:
    """It names its template by another path, and its owners of this group have the version that is served."""
    old = to_served(OLD, POD_GROUP)
    assert old["spec"] == {
        "podGroupTemplateRef": {"workload": {"workloadName": "llama", "podGroupTemplateName": "main"}},
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": "Pod",
    }
    versions = [owner["apiVersion"] for owner in old["metadata"]["ownerReferences"]]
    assert versions == ["batch/v1", "scheduling.k8s.io/v1alpha2"]


def test_a_condition_of_1_36_is_read_under_its_new_name() -> None:
    """PodGroupScheduled became PodGroupInitiallyScheduled in 1.37; other types are kept."""
    old = to_served(OLD, POD_GROUP)
    old["status"] = {"conditions": [{"type": "PodGroupScheduled"}, {"type": "DisruptionTarget"}]}
    assert from_served(old)["status"] == POD_GROUP["status"]


STANDALONE: Object = {**POD_GROUP, "spec": {"schedulingPolicy": {"basic": {}}}, "status": {}}


@pytest.mark.parametrize("body", [WORKLOAD, POD_GROUP, STANDALONE, {**POD_GROUP, "status": None}])
def test_there_and_back(body: Object) -> None:
    """Nothing is lost on the way to 1.36 and back, and what was given is not changed."""
    before = deepcopy(body)
    assert from_served(to_served(OLD, body)) == body == before

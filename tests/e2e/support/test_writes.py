"""The law of the audit log: what Muster may write of users' objects, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.group_labels import GATE
from tests.e2e.support.writes import Write, users_objects_are_left_alone

LIFT = {"metadata": {"uid": "u"}, "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
STATUS = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": []}}


@pytest.mark.parametrize(
    ("writer", "verb", "resource", "request_body"),
    [
        pytest.param("patch-pods", "patch", "pods", LIFT, id="patch-pods lifts Muster's gate"),
        pytest.param("emit-conditions", "patch", "jobs/status", STATUS, id="conditions are written on a Job"),
        pytest.param("mark-runtime", "update", "trainingruntimes", {"spec": {}}, id="a runtime is labelled"),
        pytest.param("create-workload", "create", "workloads", {"spec": {}}, id="a Workload of Muster"),
    ],
)
def test_allowed_writes_are_not_reported(
    writer: str, verb: str, resource: str, request_body: dict[str, Any]
) -> None:
    """Gates and labels of pods, conditions of owners, and Muster's own objects."""
    assert users_objects_are_left_alone([_write(writer, verb, resource, request_body)]) == []


@pytest.mark.parametrize(
    ("writer", "verb", "resource", "request_body"),
    [
        pytest.param("patch-pods", "delete", "pods", {}, id="a pod is deleted"),
        pytest.param("mark-runtime", "patch", "trainingruntimes", {"spec": {}}, id="a runtime is patched"),
        pytest.param("emit-conditions", "update", "trainingruntimes", {}, id="another one writes a runtime"),
        pytest.param(
            "create-workload", "patch", "pods", LIFT, id="another function than patch-pods writes a pod"
        ),
        pytest.param(
            "patch-pods",
            "patch",
            "pods",
            {"spec": {"schedulingGates": [{"$patch": "delete", "name": "kueue.x-k8s.io/admission"}]}},
            id="a gate of another controller is removed",
        ),
        pytest.param(
            "patch-pods", "patch", "pods", {"spec": {"schedulingGates": []}}, id="all gates are lifted"
        ),
        pytest.param(
            "patch-pods", "patch", "pods", {"metadata": {"annotations": {"a": "b"}}}, id="a pod is annotated"
        ),
        pytest.param(
            "resize-gang", "patch", "jobs", {"spec": {"parallelism": 2}}, id="a Job's spec is written"
        ),
        pytest.param(
            "emit-conditions",
            "patch",
            "jobs/status",
            {"status": {"active": 1}},
            id="more than conditions of a status",
        ),
        pytest.param(
            "emit-conditions", "update", "jobs/status", STATUS, id="a status is replaced as a whole"
        ),
    ],
)
def test_forbidden_writes_are_reported(
    writer: str, verb: str, resource: str, request_body: dict[str, Any]
) -> None:
    """Everything else on a user's object is a breach, whichever account of Muster writes it."""
    assert len(users_objects_are_left_alone([_write(writer, verb, resource, request_body)])) == 1


def _write(writer: str, verb: str, resource: str, request: dict[str, Any]) -> Write:
    return Write(writer, verb, resource, "team-a", "one", 200, request)

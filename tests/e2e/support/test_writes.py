"""The law of the audit log: what Muster may write of users' objects, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.group_labels import GATE
from tests.e2e.support.writes import Write, users_objects_are_left_alone

LIFT = {"metadata": {"uid": "u"}, "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
STATUS = {"metadata": {"resourceVersion": "7"}, "status": {"conditions": []}}


OTHERS_GATE = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "kueue.x-k8s.io/admission"}]}}
ALLOWED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("patch-pods", "patch", "pods", LIFT),
    ("emit-conditions", "patch", "jobs/status", STATUS),
    ("mark-runtime", "update", "trainingruntimes", {"spec": {}}),
    ("create-workload", "create", "workloads", {"spec": {}}),
]
FORBIDDEN: list[tuple[str, str, str, dict[str, Any]]] = [
    ("patch-pods", "delete", "pods", {}),
    ("mark-runtime", "patch", "trainingruntimes", {"spec": {}}),
    ("emit-conditions", "update", "trainingruntimes", {}),
    ("create-workload", "patch", "pods", LIFT),
    ("patch-pods", "patch", "pods", OTHERS_GATE),
    ("patch-pods", "patch", "pods", {"spec": {"schedulingGates": []}}),
    ("patch-pods", "patch", "pods", {"metadata": {"annotations": {"a": "b"}}}),
    ("resize-gang", "patch", "jobs", {"spec": {"parallelism": 2}}),
    ("emit-conditions", "patch", "jobs/status", {"status": {"active": 1}}),
    ("emit-conditions", "update", "jobs/status", STATUS),
]


def test_allowed_writes_are_not_reported() -> None:
    """Gates and labels of pods, conditions of owners, and Muster's own objects."""
    assert users_objects_are_left_alone(_write(*write) for write in ALLOWED) == []


@pytest.mark.parametrize(("writer", "verb", "resource", "request_body"), FORBIDDEN)
def test_forbidden_writes_are_reported(
    writer: str, verb: str, resource: str, request_body: dict[str, Any]
) -> None:
    """Everything else on a user's object is a breach, whichever account of Muster writes it."""
    assert len(users_objects_are_left_alone([_write(writer, verb, resource, request_body)])) == 1


def _write(writer: str, verb: str, resource: str, request: dict[str, Any]) -> Write:
    return Write(writer, verb, resource, "team-a", "one", 200, request)

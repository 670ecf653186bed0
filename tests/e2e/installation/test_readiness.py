"""What a function says of itself when it starts, on an API server with RBAC."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage
from tests.e2e.support.muster import NAMESPACE

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/muster-mark-runtime"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
UPDATE = {"verb": "update", "group": "trainer.kubeflow.org", "resource": "trainingruntimes"}


def test_every_function_has_all_its_permissions(stage: RealStage) -> None:
    """Each asks for what its step names, and the roles of the overlay grant it."""
    for name in stage.muster.functions:
        assert stage.muster.readiness(name) == (200, "OK\n"), name
        assert "PermissionMissing" not in stage.muster.log(name)


def test_a_missing_permission_is_reported_until_it_is_granted(stage: RealStage) -> None:
    """In readiness and log from the start; the function is ready all the same, and needs no restart."""
    api, muster = stage.cluster.api, stage.muster
    granted = api.must("GET", ROLE)["rules"]
    lacking = [{**rule, "verbs": [verb for verb in rule["verbs"] if verb != "update"]} for rule in granted]
    _grant(stage, lacking)
    try:
        assert until(lambda: not _may_update(stage), 30)
        muster.stop_function("mark-runtime")
        muster.start_function("mark-runtime")
        assert until(lambda: muster.readiness("mark-runtime")[0] == 200, 30)
        _, body = muster.readiness("mark-runtime")
        for resource in ("clustertrainingruntimes", "trainingruntimes"):
            assert f"update {resource}.trainer.kubeflow.org" in body
        *logged, message = _log_lines(stage)[-1]
        assert (logged, f"mark-runtime: {message}") == (["ERROR", "PermissionMissing"], body.strip())
    finally:
        _grant(stage, granted)
    assert until(lambda: muster.readiness("mark-runtime") == (200, "OK\n"), 30)
    assert _log_lines(stage)[-1][:2] == ("INFO", "PermissionsGranted")


def _grant(stage: RealStage, rules: list[dict[str, Any]]) -> None:
    stage.cluster.api.must("PATCH", ROLE, {"rules": rules}, MERGE_PATCH)


def _may_update(stage: RealStage) -> bool:
    """Whether RBAC, which hears of changed roles a moment later, would let mark-runtime write."""
    user = f"system:serviceaccount:{NAMESPACE}:mark-runtime"
    review = {"spec": {"user": user, "resourceAttributes": UPDATE}}
    allowed: bool = stage.cluster.api.must("POST", REVIEWS, review)["status"]["allowed"]
    return allowed


def _log_lines(stage: RealStage) -> list[tuple[str, str, str]]:
    """Level, reason and message of what mark-runtime logged about its permissions."""
    lines = [line for line in stage.muster.log("mark-runtime").splitlines() if '"Permission' in line]
    logged = [json.loads(line) for line in lines]
    return [(record["level"], record["reason"], record["message"]) for record in logged]

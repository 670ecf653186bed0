"""The readiness probe of a function, and its message when the cluster is not usable."""

from __future__ import annotations

import logging

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object
from muster.cluster.permissions import may
from muster.objects.resources import JOBS, PODS
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.policy.model import Action
from muster.runtime.http.readiness import Readiness
from tests.unit.runtime.fakes import FakeCluster


def test_a_missing_api_is_reported_by_a_ready_function() -> None:
    """The message says how to switch it on."""
    cluster = FakeCluster()
    assert Readiness(cluster).ask() == (True, "OK")
    cluster.served = frozenset({"v1/priorityclasses"})
    ready, message = Readiness(cluster).ask()
    assert (ready, HOW_TO_SWITCH_ON in message) == (True, True)


@pytest.mark.parametrize("error", [errors.Unavailable("refused"), errors.Unauthorized("expired")])
def test_a_function_that_cannot_reach_the_api_server_is_not_ready(error: errors.ClusterError) -> None:
    """The message says why."""
    ready, message = Readiness(FakeCluster(on_read=error)).ask()
    assert (ready, message) == (False, f"{type(error).__name__}: {error.message}")


class Authorizer(FakeCluster):
    """Answers SelfSubjectAccessReviews: no to what is named, yes to all else."""

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[dict[str, str]] = []

    def write(self, action: Action, manager: str) -> Object:
        """The answer to one question."""
        body = super().write(action, manager)
        about = body.get("spec", {}).get("resourceAttributes")
        if about is None:
            return body
        self.asked.append(about)
        spelled = f"{about['verb']} {about['resource']}/{about['subresource']}".rstrip("/")
        return {**body, "status": {"allowed": spelled not in self.refused}}


NEEDED = may("get patch", PODS) | may("patch", JOBS, subresource="status")


def test_a_missing_permission_is_reported_until_it_is_granted(caplog: pytest.LogCaptureFixture) -> None:
    """The function is ready: what it may do it does. The log says when the permission is granted."""
    caplog.set_level(logging.INFO, "muster")
    cluster = Authorizer("patch pods", "patch jobs/status")
    readiness = Readiness(cluster, function="patch_pods", permissions=NEEDED)
    ready, missing = readiness.ask()
    assert ready
    assert missing.startswith("may not patch jobs.batch/status, patch pods in all namespaces: kubectl apply")
    assert len(cluster.asked) == 3
    cluster.refused = ()
    assert readiness.ask() == readiness.ask() == (True, "OK")
    assert len(cluster.asked) == 5
    assert [(record.levelname, record.__dict__["fields"]) for record in caplog.records] == [
        ("ERROR", {"step": "patch_pods", "reason": "PermissionMissing"}),
        ("INFO", {"step": "patch_pods", "reason": "PermissionsGranted"}),
    ]

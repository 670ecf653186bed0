"""Whether a function says that it is ready, and what it says when the cluster is not."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from functions.create_workload.function.step import STEP
from muster.cluster import errors
from muster.cluster.permissions import may
from muster.cluster.port import Object
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, JOBS, NAMESPACES, PODS, Resource
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.runtime.config import Settings, connect
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.readiness import Readiness
from muster.simulator.apiserver import ApiServer
from tests.unit.runtime.fakes import NOW, FakeCluster, a_handler, a_step


@pytest.mark.parametrize(
    ("served", "words"),
    [
        pytest.param({"v1beta1/workloads", "v1beta1/podgroups"}, "OK", id="1.37 with the API switched on"),
        pytest.param({"v1alpha2/workloads", "v1alpha2/podgroups"}, "OK", id="1.36 with the API switched on"),
        pytest.param(
            {"v1/priorityclasses"},
            f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs",
            id="the API is off: gates and runtime-config are named, and stamped pods can still be let go",
        ),
        pytest.param(
            {"v1beta1/workloads", "v1alpha2/podgroups"},
            f"{HOW_TO_SWITCH_ON}; until then marked jobs run as plain jobs",
            id="half of it is as good as none",
        ),
    ],
)
def test_what_is_served(served: set[str], words: str) -> None:
    """Ready is who can reach the API server; the words tell what is missing there."""
    cluster = FakeCluster()
    cluster.served = frozenset(served)
    assert Readiness(cluster).ask() == (True, words)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.Unavailable("connection refused"), "Unavailable: connection refused"),
        (errors.Unauthorized("token expired"), "Unauthorized: token expired"),
    ],
)
def test_not_reached(error: Exception, words: str) -> None:
    """A function that cannot speak to the API server is not ready."""
    assert Readiness(FakeCluster(on_read=error)).ask() == (False, words)


def test_last_known_never_waits() -> None:
    """While an API server is silent the last answer is given at once, and it is asked only once."""
    asked, may_answer = threading.Semaphore(0), threading.Event()

    class Silent(FakeCluster):
        def served_versions(self, group: str) -> frozenset[str]:
            asked.release()
            may_answer.wait(5)
            return super().served_versions(group)

    readiness = Readiness(Silent())
    assert readiness.last_known() == (False, "the API server has not answered yet")
    assert asked.acquire(timeout=5)
    assert readiness.last_known() == (False, "the API server has not answered yet")
    assert not asked.acquire(blocking=False)
    may_answer.set()
    wait_for_answer(readiness)
    assert readiness.last_known() == (True, "OK")


def wait_for_answer(readiness: Any) -> None:
    """Wait until the question under way is answered."""
    assert readiness._asking.acquire(timeout=5)
    readiness._asking.release()


class Authorizer(FakeCluster):
    """Answers SelfSubjectAccessReviews: no to what is named, yes to all else.

    Attributes:
        asked: the attributes of each question so far.
    """

    def __init__(self, *refused: str) -> None:
        super().__init__()
        self.refused = refused
        self.asked: list[dict[str, str]] = []

    def create(self, resource: Resource, body: Object, *, manager: str) -> Object:
        """The answer to one question."""
        super().create(resource, body, manager=manager)
        about = body["spec"]["resourceAttributes"]
        self.asked.append(about)
        spelled = f"{about['verb']} {about['resource']}/{about['subresource']}".rstrip("/")
        return {**body, "status": {"allowed": spelled not in self.refused}}


NEEDED = may("get patch", PODS) | may("patch", JOBS, subresource="status")


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        pytest.param([], "OK", id="all are granted"),
        pytest.param(
            ["patch pods"],
            "may not patch pods in all namespaces: kubectl apply -k eventing/rbac",
            id="one is missing",
        ),
        pytest.param(
            ["patch pods", "patch jobs/status"],
            "may not patch jobs.batch/status, patch pods in all namespaces: kubectl apply -k eventing/rbac",
            id="a subresource is told with its API group",
        ),
    ],
)
def test_missing_permissions_are_told_by_a_function_that_is_ready(refused: Sequence[str], words: str) -> None:
    """What it may do it does: one that is not ready is sent no events, and lifts no gate."""
    assert Readiness(Authorizer(*refused), permissions=NEEDED).ask() == (True, words)


def test_a_permission_is_asked_for_until_it_is_granted(caplog: pytest.LogCaptureFixture) -> None:
    """Once at start, as a rule; one that is missing again with each probe, and the log says when it came."""
    caplog.set_level(logging.INFO, "muster")
    cluster = Authorizer("patch pods")
    readiness = Readiness(cluster, function="patch_pods", permissions=NEEDED)
    readiness.ask()
    assert len(cluster.asked) == 3
    assert readiness.ask()[1].startswith("may not patch pods")
    assert len(cluster.asked) == 4
    cluster.refused = ()
    assert readiness.ask() == readiness.ask() == (True, "OK")
    assert len(cluster.asked) == 5
    assert [(one.levelname, one.message, one.__dict__["fields"]) for one in caplog.records] == [
        (
            "ERROR",
            "may not patch pods in all namespaces: kubectl apply -k eventing/rbac",
            {"step": "patch_pods", "reason": "PermissionMissing"},
        ),
        ("INFO", "all permissions are granted", {"step": "patch_pods", "reason": "PermissionsGranted"}),
    ]


def test_with_the_api_off_as_well_both_are_told() -> None:
    """Neither trouble hides the other."""
    cluster = Authorizer("patch pods")
    cluster.served = frozenset()
    ready, words = Readiness(cluster, permissions=NEEDED).ask()
    assert ready
    assert words.startswith(HOW_TO_SWITCH_ON)
    assert "; may not patch pods" in words


@pytest.mark.parametrize(
    ("error", "state"),
    [
        pytest.param(
            errors.Forbidden("no", status=403),
            (True, "permissions are not known: no"),
            id="a cluster that lets nobody ask is told so, and the function works on",
        ),
        pytest.param(
            errors.Unavailable("refused"),
            (False, "Unavailable: refused"),
            id="an API server that is away makes it not ready",
        ),
    ],
)
def test_questions_that_are_not_answered(error: errors.ClusterError, state: tuple[bool, str]) -> None:
    """And all are asked again later."""
    cluster = Authorizer()
    cluster.on_write = error
    readiness = Readiness(cluster, permissions=NEEDED)
    assert readiness.ask() == state
    cluster.on_write = None
    assert readiness.ask() == (True, "OK")
    assert len(cluster.asked) == 3


def test_inside_one_namespace() -> None:
    """A Role is asked about its own namespace; what is in no namespace is asked about as such."""
    cluster = Authorizer()
    step = a_step(permissions=may("get", PODS, NAMESPACES, CLUSTER_TRAINING_RUNTIMES))
    assert Readiness.of(a_handler(step, cluster, namespace="team-a"), cluster).ask() == (True, "OK")
    where = {about["resource"]: about["namespace"] for about in cluster.asked}
    assert where == {"pods": "team-a", "namespaces": "team-a", "clustertrainingruntimes": ""}


def test_dead_letters_are_kept_in_one_namespace() -> None:
    """The dead letter asks about where it keeps them."""
    cluster = Authorizer()
    keeper = DeadLetters(cluster, Settings(dead_letter_namespace="letters"), lambda: NOW)
    assert Readiness.of(keeper, cluster).ask() == (True, "OK")
    assert {about["namespace"] for about in cluster.asked} == {"letters"}
    assert {about["verb"] for about in cluster.asked} == {"create", "list", "delete"}


def test_on_an_api_server() -> None:
    """The questions are ones that an API server understands."""
    with ApiServer() as server:
        cluster = connect(Settings(api_server=server.url), user_agent=STEP.manager)
        readiness = Readiness.of(a_handler(STEP, cluster), cluster)
        assert readiness.ask() == (True, "OK")
        asked = server.calls()[STEP.manager, "create", "selfsubjectaccessreviews"]
        assert asked == len(STEP.permissions) > 20

"""The readiness probe of a function, and its message when the cluster is not usable."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from functions.create_workload.function.step import STEP
from muster.cluster import errors
from muster.cluster.interface import Object
from muster.cluster.permissions import may
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, JOBS, NAMESPACES, PODS
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.policy.model import Action
from muster.runtime.config import Settings, connect
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.http.readiness import Readiness
from muster.simulator.apiserver import ApiServer
from tests.unit.runtime.fakes import NOW, FakeCluster, a_handler, a_step


@pytest.mark.parametrize(
    ("served", "is_on"),
    [
        pytest.param({"v1beta1/workloads", "v1beta1/podgroups"}, True, id="1.37 with the API switched on"),
        pytest.param({"v1alpha2/workloads", "v1alpha2/podgroups"}, True, id="1.36 with the API switched on"),
        pytest.param(
            {"v1/priorityclasses"},
            False,
            id="the API is off: gates and runtime-config are named, and stamped pods can still be let go",
        ),
        pytest.param({"v1beta1/workloads", "v1alpha2/podgroups"}, False, id="half of it is as good as none"),
    ],
)
def test_a_missing_api_is_reported_by_a_ready_function(served: set[str], is_on: bool) -> None:
    """A function that reaches the API server is ready; the message says how to switch on a missing API."""
    cluster = FakeCluster()
    cluster.served = frozenset(served)
    ready, message = Readiness(cluster).ask()
    assert ready
    assert (message == "OK", HOW_TO_SWITCH_ON in message) == (is_on, not is_on)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(errors.Unavailable("refused"), "Unavailable"), (errors.Unauthorized("expired"), "Unauthorized")],
)
def test_not_reached(error: errors.ClusterError, reason: str) -> None:
    """A function that cannot speak to the API server is not ready."""
    ready, message = Readiness(FakeCluster(on_read=error)).ask()
    assert not ready
    assert reason in message
    assert error.message in message


def test_last_known_never_waits() -> None:
    """While an API server is silent the last answer is given at once, and it is asked only once."""
    asked, may_answer = threading.Semaphore(0), threading.Event()

    class Silent(FakeCluster):
        def served_versions(self, group: str) -> frozenset[str]:
            asked.release()
            may_answer.wait(5)
            return super().served_versions(group)

    readiness = Readiness(Silent())
    ready, message = readiness.last_known()
    assert not ready
    assert asked.acquire(timeout=5)
    assert readiness.last_known() == (False, message)
    assert not asked.acquire(blocking=False)
    may_answer.set()
    wait_for_answer(readiness)
    assert readiness.last_known() == (True, "OK")


def test_probes_share_a_check() -> None:
    """Any number of requests cost the API server one check at a time, and one in five seconds."""
    asked, may_answer = threading.Semaphore(0), threading.Event()

    class SlowToAnswer(FakeCluster):
        def served_versions(self, group: str) -> frozenset[str]:
            asked.release()
            may_answer.wait(5)
            return super().served_versions(group)

    readiness = Readiness(SlowToAnswer())
    first = threading.Thread(target=readiness.recent)
    first.start()
    assert asked.acquire(timeout=5)
    assert [readiness.recent()[0] for _ in range(5)] == [False] * 5
    may_answer.set()
    first.join(5)
    assert [readiness.recent() for _ in range(5)] == [(True, "OK")] * 5
    assert not asked.acquire(blocking=False)


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

    def write(self, action: Action, manager: str) -> Object:
        """The answer to one question."""
        body = super().write(action, manager)
        about = body["spec"]["resourceAttributes"]
        self.asked.append(about)
        spelled = f"{about['verb']} {about['resource']}/{about['subresource']}".rstrip("/")
        return {**body, "status": {"allowed": spelled not in self.refused}}


NEEDED = may("get patch", PODS) | may("patch", JOBS, subresource="status")


@pytest.mark.parametrize(
    ("refused", "named"),
    [
        pytest.param([], ["OK"], id="all are granted"),
        pytest.param(["patch pods"], ["patch pods", "eventing/rbac"], id="one is missing"),
        pytest.param(
            ["patch pods", "patch jobs/status"],
            ["patch jobs.batch/status", "patch pods", "eventing/rbac"],
            id="a subresource is named with its API group",
        ),
    ],
)
def test_missing_permissions_are_reported_by_a_ready_function(
    refused: Sequence[str], named: Sequence[str]
) -> None:
    """What it may do it does: one that is not ready is sent no events, and lifts no gate."""
    ready, message = Readiness(Authorizer(*refused), permissions=NEEDED).ask()
    assert ready
    assert [fact for fact in named if fact not in message] == []
    assert ("get pods" in message, "OK" in message) == (False, not refused)


def test_a_permission_is_asked_for_until_it_is_granted(caplog: pytest.LogCaptureFixture) -> None:
    """Once at start, as a rule; one that is missing again with each probe, and the log says when it came."""
    caplog.set_level(logging.INFO, "muster")
    cluster = Authorizer("patch pods")
    readiness = Readiness(cluster, function="patch_pods", permissions=NEEDED)
    readiness.ask()
    assert len(cluster.asked) == 3
    _, missing = readiness.ask()
    assert "patch pods" in missing
    assert len(cluster.asked) == 4
    cluster.refused = ()
    assert readiness.ask() == readiness.ask() == (True, "OK")
    assert len(cluster.asked) == 5
    assert [(record.levelname, record.__dict__["fields"]) for record in caplog.records] == [
        ("ERROR", {"step": "patch_pods", "reason": "PermissionMissing"}),
        ("INFO", {"step": "patch_pods", "reason": "PermissionsGranted"}),
    ]
    assert caplog.messages[0] == missing


def test_with_the_api_off_as_well_both_are_reported() -> None:
    """Neither trouble hides the other."""
    cluster = Authorizer("patch pods")
    cluster.served = frozenset()
    ready, message = Readiness(cluster, permissions=NEEDED).ask()
    assert ready
    assert HOW_TO_SWITCH_ON in message
    assert "patch pods" in message


@pytest.mark.parametrize(
    ("error", "ready"),
    [
        pytest.param(
            errors.Forbidden("not granted", status=403),
            True,
            id="a cluster that forbids access reviews is reported, and the function works on",
        ),
        pytest.param(
            errors.Unavailable("refused"), False, id="an API server that is away makes it not ready"
        ),
    ],
)
def test_questions_that_are_not_answered(error: errors.ClusterError, ready: bool) -> None:
    """And all are asked again later."""
    cluster = Authorizer()
    cluster.on_write = error
    readiness = Readiness(cluster, permissions=NEEDED)
    is_ready, message = readiness.ask()
    assert is_ready == ready
    assert error.message in message
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

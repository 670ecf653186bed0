"""Sweeps: one namespace after another, planned from lists, live where a write is needed."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Event
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object, Objects
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.observe.sweep import Listing, objects_of
from muster.objects.meta import ObjectRef
from muster.objects.resources import NODES, PODS, Resource
from muster.policy.model import Action, GangReport, NoOp
from muster.policy.reasons import Reason
from muster.runtime.http.responses import HttpAnswer
from tests.unit.runtime.fakes import DONE, a_handler, a_step, an_event

TEAMS = ("team-a", "team-b", "team-c")


class World(Snapshot):
    """Pods of namespaces; remembers calls, and fails to list pods of namespaces in `broken`."""

    def __init__(self, pods: int = 2) -> None:
        named = [*(("Namespace", "", name) for name in TEAMS), ("Node", "", "n")]
        named += [("Pod", team, f"p{number}") for team in TEAMS for number in range(pods)]
        super().__init__(
            {
                "apiVersion": "v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"},
            }
            for kind, namespace, name in named
        )
        self.calls: list[str] = []
        self.broken: dict[str, Exception] = {}

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return and remember."""
        self.calls.append(f"get {namespace}/{name}")
        return super().get(resource, name, namespace)

    def list(self, resource: Resource, namespace: str = "", **options: Any) -> Objects:
        """Return and remember."""
        self.calls.append(f"list {resource.plural} {namespace}".strip())
        if namespace in self.broken:
            raise self.broken[namespace]
        return super().list(resource, namespace, **options)

    def write(self, action: Action, manager: str) -> Object:  # noqa: ARG002 - the same for all
        """Remember."""
        self.calls.append("write")
        return {}


Plan = Callable[[ObjectRef, datetime], Any]


def a_sweeper(world: World, plan: Plan, *, resource: Resource = PODS, **settings: Any) -> Any:
    """A handler of a step that looks at each pod."""
    step = a_step(
        plan=plan,
        observe=lambda cluster, subject: cluster.get(resource, subject.name, subject.namespace) and subject,
        swept=lambda cluster, namespace: objects_of(cluster, namespace, resource),
        lists=(Listing(resource),),
    )
    return a_handler(step, world, **settings)


def swept(handler: Any, event_id: str = "9") -> HttpAnswer:
    """The answer to a sweep event; by the id the first namespace is the first by name."""
    headers, _ = an_event(type="dev.muster.sweep", id=event_id)
    answer: HttpAnswer = handler.handle(headers, b"")
    return answer


def nothing(_inputs: ObjectRef, _now: datetime) -> NoOp:
    """Plan nothing."""
    return NoOp(Reason.UP_TO_DATE)


def test_an_object_that_needs_a_write_is_read_live(caplog: pytest.LogCaptureFixture) -> None:
    """All others only in a list of each namespace; the sweep's line in the log counts what came of all."""
    caplog.set_level("INFO", "muster")
    world = World(pods=20)

    def plan(subject: ObjectRef, _now: datetime) -> Any:
        return DONE if (subject.namespace, subject.name) == ("team-b", "p1") else NoOp(Reason.UP_TO_DATE)

    swept(a_sweeper(world, plan))
    assert sorted(world.calls) == sorted(
        ["list namespaces", *(f"list pods {team}" for team in TEAMS), "get team-b/p1", "write", "write"]
    )
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert [line.get("name", "") for line in fields] == ["p1", ""]
    assert caplog.messages[-1] == "1 GatesLifted, 59 UpToDate"


def test_a_namespace_that_cannot_be_read_does_not_stop_the_others() -> None:
    """Nor does an object that fails. An API server that is away does; the next sweep goes on there."""

    def plan(subject: ObjectRef, _now: datetime) -> Any:
        if subject.namespace == "team-a":
            raise errors.Forbidden("no role")
        return NoOp(Reason.UP_TO_DATE)

    world = World()
    handler = a_sweeper(world, plan)
    world.broken["team-b"] = errors.Unavailable("the answer is not a JSON object", status=200)
    assert swept(handler).status == 202
    assert "list pods team-c" in world.calls
    world.broken["team-b"] = errors.Unavailable("away")
    assert swept(handler).status == 503
    world.calls.clear()
    world.broken.clear()
    assert swept(handler).status == 202
    assert world.calls == ["list pods team-b", "list pods team-c"]


def test_the_deadline_ends_a_sweep_and_the_next_goes_on() -> None:
    """A namespace has at most one whole sweep of a round; the last one ends it, and reports all gangs."""
    world, seen, whole = World(), [], []

    def plan(subject: ObjectRef, _now: datetime) -> Any:
        seen.append(subject.namespace)
        if subject.namespace == "team-b":
            time.sleep(0.2)
        return NoOp(Reason.UP_TO_DATE, gangs=GangReport(placed=1))

    handler = a_sweeper(world, plan, deadline_seconds=0.15)
    handler.metrics.swept_all = lambda _now, gangs: whole.append([name for name, _ in gangs])
    swept(handler)
    assert (seen, whole) == (["team-a", "team-a", "team-b"], [])
    swept(handler)
    assert (seen[3:], whole) == (["team-b"], [])
    swept(handler)
    assert (seen[4:], whole) == (["team-c", "team-c"], [["team-a", "team-a", "team-b", "team-c", "team-c"]])


def test_a_sweep_asked_for_during_another_one_lists_again() -> None:
    """What came after the list of the sweep in work is not left to the next minute."""
    world, began, goes_on = World(), Event(), Event()

    def plan(_subject: ObjectRef, _now: datetime) -> Any:
        began.set()
        assert goes_on.wait(5)
        return NoOp(Reason.UP_TO_DATE)

    handler = a_sweeper(world, plan, namespace="team-a")
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(swept, handler)]
        assert began.wait(5)
        answers.append(pool.submit(swept, handler))
        goes_on.set()
        assert [answer.result().status for answer in answers] == [202, 202]
    assert world.calls == ["list pods team-a"] * 2


def test_after_a_restart_another_namespace_may_be_the_first() -> None:
    """Else the last ones would have no turn where a function is started anew for each sweep."""
    first = set()
    for number in range(20):
        world = World()
        swept(a_sweeper(world, nothing), str(number))
        first.add(world.calls[1])
    assert first == {f"list pods {team}" for team in TEAMS}


@pytest.mark.parametrize(
    ("resource", "namespace", "read"),
    [(NODES, "", ["list namespaces", "list nodes"]), (PODS, "team-b", ["list pods team-b"])],
)
def test_which_namespaces_are_swept(resource: Resource, namespace: str, read: list[str]) -> None:
    """Kinds that are in no namespace come once; with MUSTER_NAMESPACE no other namespace is asked about."""
    world = World()
    swept(a_sweeper(world, nothing, resource=resource, namespace=namespace))
    assert world.calls == read

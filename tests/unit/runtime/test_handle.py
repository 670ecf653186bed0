"""Handling one event by one step: the calls, their arguments, and the deadline."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from muster.cluster import errors
from muster.events.model import OtherEvent, ResourceEvent
from muster.events.parse import owner_of
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from tests.unit.runtime.fakes import BODY, DONE, NOW, POD, FakeCluster, a_handler, a_step, an_event, observe


def test_step_sees_the_event_the_subject_and_the_time() -> None:
    """Each part of a step gets what the part before it gave, and the plan gets the time."""
    seen: list[Any] = []

    def predicate(event: ResourceEvent) -> ObjectRef:
        seen.append(event.object)
        return event.ref

    def plan(inputs: ObjectRef, now: Any) -> NoOp:
        seen.extend([inputs, now])
        return NoOp(Reason.UP_TO_DATE)

    a_handler(a_step(predicate=predicate, plan=plan)).handle(*an_event())
    assert seen == [BODY, POD, NOW]


def test_step_writes_under_its_own_field_manager() -> None:
    """The field manager is the step's name, so that managedFields show who wrote what."""
    cluster = FakeCluster()
    a_handler(cluster=cluster).handle(*an_event())
    assert cluster.calls == ["get pods team-a/llama-0", *["create pods muster-patch-pods"] * 2]


def test_event_that_needs_nothing_costs_no_call() -> None:
    """Most updates are answered from the event alone."""
    cluster = FakeCluster()
    step = a_step(predicate=lambda _event: NoOp(Reason.NOT_FOR_THIS_STEP))
    assert a_handler(step, cluster).handle(*an_event()).status == 202
    assert cluster.calls == []


def test_foreign_event_is_nothing() -> None:
    """An event of another sender's type is taken and left alone."""
    cluster = FakeCluster()
    assert a_handler(cluster=cluster).handle(*an_event(type="com.example.order")).status == 202
    assert cluster.calls == []


def a_reply(data: Any) -> tuple[dict[str, str], bytes]:
    """A reply event with this data, in binary mode."""
    headers, _ = an_event(type="dev.muster.emit_conditions.waiting")
    return headers, json.dumps(data).encode()


def test_reply_event_of_another_step_is_an_event_for_a_step_that_asks_for_it() -> None:
    """`other_events` gets the event's data; the object it returns is observed like any other."""
    seen: list[OtherEvent] = []

    def other_events(event: OtherEvent) -> ObjectRef:
        seen.append(event)
        return owner_of(event)

    cluster = FakeCluster()
    owner = {"apiVersion": "v1", "kind": "Pod", "namespace": "team-a", "name": "llama-0"}
    event = a_reply({"reason": "Unschedulable", "owner": owner})
    answer = a_handler(a_step(other_events=other_events), cluster).handle(*event)
    assert answer.status == 200
    assert [event.data["reason"] for event in seen] == ["Unschedulable"]
    assert cluster.calls[0] == "get pods team-a/llama-0"


@pytest.mark.parametrize(
    ("data", "path"),
    [
        pytest.param("text", "data", id="no object"),
        pytest.param({"reason": "Unschedulable"}, "data.owner", id="no owner"),
        pytest.param({"owner": {"apiVersion": "v1", "kind": "Pod"}}, "data.owner.name", id="no name"),
        pytest.param(
            {"owner": {"apiVersion": "v1", "kind": "Pod", "name": "../../secrets"}},
            "data.owner.name",
            id="a name that would be another path",
        ),
    ],
)
def test_reply_event_without_an_owner_is_unreadable(data: Any, path: str) -> None:
    """It goes to the dead letter sink, with the path of the field."""
    step = a_step(other_events=owner_of)
    answer = a_handler(step).handle(*a_reply(data))
    content = json.loads(answer.body)
    assert (answer.status, content["reason"]) == (400, "UnreadableEvent")
    assert content["message"].startswith(f"{path}: ")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(errors.Conflict("the object has been modified", status=409), id="written"),
        pytest.param(errors.AlreadyExists("the name is taken", status=409), id="made"),
    ],
)
@pytest.mark.parametrize(
    ("times", "status", "looks"),
    [
        pytest.param(1, 200, 2, id="another writer once came in between: the step reads again and writes"),
        pytest.param(3, 200, 4, id="three times are as many as it takes"),
        pytest.param(4, 409, 4, id="four times: the event comes again later"),
    ],
)
def test_a_conflict_is_planned_again_at_once(
    times: int, status: int, looks: int, error: errors.ClusterError
) -> None:
    """The object as it is now decides, not the plan that came too late."""
    cluster, left = FakeCluster(), iter(range(times))

    def execute(_cluster: Any, plan: Any, _manager: str) -> Any:
        if next(left, None) is not None:
            raise error
        return plan

    assert a_handler(a_step(execute=execute), cluster).handle(*an_event()).status == status
    assert cluster.calls == ["get pods team-a/llama-0"] * looks


def test_time_that_is_over_stops_the_calls() -> None:
    """After the deadline no further call is made, and the event comes again."""
    cluster = FakeCluster()
    answer = a_handler(cluster=cluster, deadline_seconds=0).handle(*an_event())
    content = json.loads(answer.body)
    assert (answer.status, content["reason"]) == (503, "DeadlineExceeded")
    assert cluster.calls == []


def test_slow_reads_leave_no_time_to_write() -> None:
    """A read that took all the time is the last call: the writes wait for the next delivery."""
    cluster = FakeCluster()

    def slowly(bounded: Any, subject: ObjectRef) -> ObjectRef:
        observed = observe(bounded, subject)
        while not bounded.time_is_over:
            time.sleep(0.005)
        return observed

    answer = a_handler(a_step(observe=slowly), cluster, deadline_seconds=0.02).handle(*an_event())
    assert answer.status == 503
    assert cluster.calls == ["get pods team-a/llama-0"]


def test_stop_waits_for_writes_in_flight() -> None:
    """Events in flight are counted until their writes are done."""
    writing, may_finish = threading.Event(), threading.Event()

    def execute(_cluster: Any, plan: Any, _manager: str) -> Any:
        writing.set()
        may_finish.wait(5)
        return plan

    handler = a_handler(a_step(execute=execute))
    answers: list[int] = []
    at_work = threading.Thread(target=lambda: answers.append(handler.handle(*an_event()).status))
    at_work.start()
    assert writing.wait(5)
    assert not handler.in_flight.wait_until_none(0.01)
    may_finish.set()
    assert handler.in_flight.wait_until_none(5)
    at_work.join(5)
    assert answers == [200]


@pytest.mark.parametrize("many", [8])
def test_handler_is_shared_by_threads(many: int) -> None:
    """Events handled at the same time do not see each other's calls or answers."""
    together = threading.Barrier(many)

    def wait_for_all(bounded: Any, subject: ObjectRef) -> ObjectRef:
        together.wait(5)
        return observe(bounded, subject)

    handler = a_handler(a_step(observe=wait_for_all), workers=many)
    ids: list[str] = []

    def one(number: int) -> None:
        ids.append(handler.handle(*an_event(id=str(number))).headers["ce-id"])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert sorted(ids) == [f"{number}.patch_pods" for number in range(many)]
    assert DONE.actions  # every one of them wrote

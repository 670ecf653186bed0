"""Handling one event by one step: the calls, their arguments, the deadline, and one run per object."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import pytest

from muster.cluster import errors
from muster.cluster.http import deadline
from muster.events.parse import Sweep, parse
from muster.objects.meta import ObjectRef
from muster.objects.resources import CONFIGMAPS, NAMESPACES, Resource
from muster.policy.model import NoOp, Reply
from muster.policy.reasons import Reason
from muster.runtime.handle import Handler
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.memory import Memory
from tests.unit.runtime.fakes import BODY, FakeCluster, a_handler, a_step, an_event, observe, until


@pytest.mark.parametrize(
    ("step", "event"),
    [
        (a_step(predicate=lambda _event: NoOp(Reason.NOT_FOR_THIS_STEP)), an_event()),
        (a_step(), an_event(type="com.example.order")),
    ],
)
def test_event_that_needs_nothing_costs_no_call(step: Any, event: Any) -> None:
    """Most updates, and events of other senders, are answered from the event alone."""
    cluster = FakeCluster()
    assert a_handler(step, cluster).handle(*event).status == 202
    assert cluster.calls == []


@pytest.mark.parametrize(("times", "status", "reads"), [(1, 200, 2), (3, 200, 4), (4, 409, 4)])
def test_a_conflict_is_planned_again_at_once(times: int, status: int, reads: int) -> None:
    """The object as it is now decides; after four times the event comes again later."""
    cluster, left = FakeCluster(), iter(range(times))

    def execute(_cluster: Any, plan: Any, _manager: str) -> Any:
        if next(left, None) is not None:
            raise errors.Conflict("modified")
        return plan

    assert a_handler(a_step(execute=execute), cluster).handle(*an_event()).status == status
    assert cluster.calls == ["get pods team-a/llama-0"] * reads


@pytest.mark.parametrize("times_out", [False, True])
def test_after_the_deadline_no_call_is_made(times_out: bool) -> None:
    """A read that took all the time is the last call; the client waits no longer than the event."""

    class Slow(FakeCluster):
        def get(self, *arguments: Any) -> Any:
            found = super().get(*arguments)
            time.sleep(max(0.0, deadline.seconds_left()))
            if times_out:
                raise errors.Unavailable("timed out")
            return found

    cluster = Slow()
    answer = a_handler(cluster=cluster, deadline_seconds=0.4).handle(*an_event())
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "Unavailable")
    assert cluster.calls == ["get pods team-a/llama-0"]


class Held:
    """A function whose runs wait until `release` is set."""

    def __init__(self, **settings: Any) -> None:
        self.runs: list[str] = []
        self.release = threading.Event()
        self.fails = False
        self.handler: Handler = a_handler(a_step(observe=self._observe), **settings)
        self._senders = ThreadPoolExecutor(20)

    def _observe(self, cluster: Any, subject: ObjectRef) -> ObjectRef:
        self.runs.append(subject.uid)
        assert self.release.wait(10)
        if self.fails:
            raise errors.Unavailable("no answer")
        return observe(cluster, subject)

    def send(self, uid: str = "1") -> Future[HttpAnswer]:
        """Send an event about a pod, and wait until it is in work."""
        headers, _ = an_event()
        body = {**BODY, "metadata": {**BODY["metadata"], "uid": uid}}
        count = self.handler.in_flight.count
        sent = self._senders.submit(self.handler.handle, headers, json.dumps(body).encode())
        until(lambda: self.handler.in_flight.count > count)
        return sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release.set()
        self._senders.shutdown()


@pytest.mark.parametrize("fails", [False, True])
def test_events_that_come_during_a_run_share_the_next_one(fails: bool) -> None:
    """The run in work may have read the object before it changed; one answer has the reply event."""
    with Held() as function:
        function.fails = fails
        first, *more = [function.send() for _ in range(5)]
        time.sleep(0.05)  # until the others wait
        function.release.set()
        statuses = sorted(answer.result().status for answer in more)
        assert first.result().status == (503 if fails else 200)
    assert statuses == ([503] * 4 if fails else [200, 202, 202, 202])
    assert function.runs == ["1", "1"]
    assert function.handler._runs._runs == {}


def test_events_about_another_uid_have_their_own_run() -> None:
    """A forged one would answer those of the object that lives."""
    with Held() as function:
        answers = [function.send(uid) for uid in ("1", "2")]
        until(lambda: len(function.runs) == 2)
        function.release.set()
        assert [answer.result().status for answer in answers] == [200, 200]


def test_a_wait_for_a_run_ends_at_the_deadline() -> None:
    """Then the events come again."""
    with Held(deadline_seconds=0.1) as function:
        _, *more = [function.send() for _ in range(3)]
        answers = [answer.result() for answer in more]
    assert [answer.status for answer in answers] == [503, 503]
    assert {json.loads(answer.body)["reason"] for answer in answers} == {"Unavailable"}
    assert function.runs == ["1"]


def test_what_is_new_is_not_read_before_it_is_created() -> None:
    """Only at the first try for an event: after a conflict, and in a sweep, everything is read."""
    seen, cluster = [], FakeCluster(on_write=errors.AlreadyExists("it exists"))

    def look(cluster: Any, subject: ObjectRef) -> ObjectRef:
        seen.append(cluster.expects_new)
        return subject

    handler = a_handler(a_step(observe=look), cluster)
    assert handler.handle(*an_event()).status == 409
    assert seen == [True, False, False, False]
    seen.clear()
    handler.handle(*an_event(type="dev.muster.sweep"))
    assert not any(seen)


def test_an_event_is_passed_on_to_the_next_step() -> None:
    """By a reply about the object, also where this step does nothing; a reply of the plan comes first."""
    parts = {
        "plan": lambda _inputs, _now: NoOp(Reason.UP_TO_DATE),
        "passed_on": lambda one: Reply("look", one.ref),
    }
    answer = a_handler(a_step(**parts)).handle(*an_event())
    assert (answer.status, answer.headers["ce-type"]) == (200, "dev.muster.patch_pods.look")
    assert json.loads(answer.body)["owner"]["name"] == "llama-0"
    answer = a_handler(a_step(passed_on=parts["passed_on"])).handle(*an_event())
    assert answer.headers["ce-type"] == "dev.muster.patch_pods.gates_lifted"


def test_a_sweep_that_wrote_has_one_reply() -> None:
    """By it the next step sweeps at once."""
    answer = a_handler().handle(*an_event(type="dev.muster.sweep"))
    assert answer.headers["ce-type"] == "dev.muster.patch_pods.swept"
    assert isinstance(parse(answer.headers, answer.body), Sweep)
    idle = a_step(plan=lambda _inputs, _now: NoOp(Reason.UP_TO_DATE))
    assert a_handler(idle).handle(*an_event(type="dev.muster.sweep")) == HttpAnswer(202)


def test_config_maps_and_opted_in_namespaces_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """For five seconds, by all events of a function; what is written about is always read."""
    now, memory, calls = [100.0], Memory(), []
    monkeypatch.setattr("muster.runtime.memory.time.monotonic", lambda: now[0])

    def read(resource: Resource, answer: Any) -> Any:
        def call() -> Any:
            calls.append(resource)
            return answer

        return memory.answer((resource, "a"), call)

    opted_in = {"metadata": {"labels": {"muster.dev/gang-jobs": "enabled"}}}
    for answer, reads in ((None, 3), ({"metadata": {}}, 3), (opted_in, 1)):
        assert [read(NAMESPACES, answer) for _ in range(3)] == [answer] * 3
        assert len(calls) == reads
        calls.clear()
    read(CONFIGMAPS, None)
    now[0] += 4.9
    read(CONFIGMAPS, {})
    assert calls == [CONFIGMAPS]
    now[0] += 0.2
    assert read(CONFIGMAPS, {}) == {}

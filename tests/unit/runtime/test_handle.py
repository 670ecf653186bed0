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
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.handle import Handler
from muster.runtime.http.responses import HttpAnswer
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
    answer = a_handler(cluster=cluster, deadline_seconds=0.05).handle(*an_event())
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

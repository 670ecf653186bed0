"""Events about one object that wait at the same time share a run, which begins after all of them came."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from muster.cluster.errors import Unavailable
from muster.objects.meta import ObjectRef
from muster.runtime.handle import Handler
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.sharing.turns import Turns
from tests.unit.runtime.fakes import BODY, a_handler, a_step, an_event, observe


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


class BusyFunction:
    """A function whose only worker, and the one for other namespaces, are held by events about two pods.

    Args:
        fails: name and UID of the pod whose first run fails.
        settings: of the function.
    """

    def __init__(self, *, fails: str, **settings: Any) -> None:
        self._fails = fails
        self.runs: Counter[str] = Counter()
        self.release = threading.Event()
        self.handler: Handler = a_handler(a_step(observe=self._observe), workers=1, **settings)
        self.senders = ThreadPoolExecutor(20)
        self.first = [self.send("first", namespace) for namespace in ("team-a", "team-b")]
        until(lambda: self.runs.total() == 2)

    def _observe(self, cluster: Any, subject: ObjectRef) -> ObjectRef:
        run = f"{subject.name} {subject.uid}"
        self.runs[run] += 1
        assert self.release.wait(10)
        if run == self._fails and self.runs[run] == 1:
            raise Unavailable("no answer")
        return observe(cluster, subject)

    def send(self, name: str, namespace: str = "team-a", uid: str = "1") -> Future[HttpAnswer]:
        """Send an event about a pod."""
        headers, _ = an_event()
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        body = json.dumps({**BODY, "metadata": {**BODY["metadata"], **metadata}}).encode()
        return self.senders.submit(self.handler.handle, headers, body)

    def wait_for(self, events: int) -> None:
        """Wait until so many events are in work or wait."""
        until(lambda: self.handler.in_flight.count == events)


@contextmanager
def busy(*, fails: str = "", **settings: Any) -> Iterator[BusyFunction]:
    """Yield a busy function; its events end with the block."""
    function = BusyFunction(fails=fails, **settings)
    try:
        yield function
    finally:
        function.release.set()
        function.senders.shutdown()


def test_events_that_wait_share_a_run() -> None:
    """Five changes of an object while others keep the workers are one; one answer has the reply event."""
    with busy() as function:
        answers = [function.send("second") for _ in range(5)]
        function.wait_for(7)
        function.release.set()
        assert sorted(answer.result().status for answer in answers) == [200, 202, 202, 202, 202]
    assert function.runs["second 1"] == 1


def test_an_event_that_comes_during_a_run_has_its_own() -> None:
    """The run may have read the object before it changed."""
    with busy() as function:
        again = function.send("first")
        function.wait_for(3)
        function.release.set()
        assert again.result().status == 200
    assert function.runs["first 1"] == 3


def test_events_about_another_uid_have_their_own_run() -> None:
    """A forged one would answer those of the object that lives."""
    with busy() as function:
        answers = [function.send("second", uid=uid) for uid in ("1", "2")]
        function.wait_for(4)
        function.release.set()
        assert [answer.result().status for answer in answers] == [200, 200]
    assert (function.runs["second 1"], function.runs["second 2"]) == (1, 1)


def test_events_that_get_no_turn_come_again() -> None:
    """All of them, whichever waits for the turn."""
    with busy(deadline_seconds=0.2) as function:
        answers = [function.send("second") for _ in range(3)]
        reasons = {json.loads(answer.result().body)["reason"] for answer in answers}
    assert reasons == {"NamespaceBusy"}
    assert function.runs["second 1"] == 0


def test_an_event_shares_the_first_run_that_began_after_it() -> None:
    """Not the last one: while events keep coming, there is always a later one."""
    turns = Turns(workers=2, waiting=8, clock=lambda: 0.0)
    held = [turns.join("team-a", "Pod/other", number) for number in range(2)]
    first, waiting = (turns.join("team-a", "Pod/llama", "run") for _ in range(2))
    turns.end(held[0])
    later, last = (turns.join("team-a", "Pod/llama", "run") for _ in range(2))
    turns.end(held[1])
    assert [turn.begun.is_set() for turn in (first, waiting, later, last)] == [True, False, True, False]
    first.outcome = Outcome(OutcomeKind.DONE, "GatesLifted")
    turns.end(first)
    assert (waiting.outcome, last.outcome) == (first.outcome, None)


def test_after_a_run_that_failed_the_next_event_has_its_own() -> None:
    """The time of the first may have been over, and that of the next is not."""
    with busy(fails="second 1") as function:
        answers = [function.send("second") for _ in range(3)]
        function.wait_for(5)
        function.release.set()
        assert sorted(answer.result().status for answer in answers) == [200, 202, 503]
    assert function.runs["second 1"] == 2


def test_events_that_share_a_run_take_places() -> None:
    """Each holds a thread: without a limit events of one namespace would take all of them."""
    with busy(waiting=3) as function:
        answers = [function.send("second") for _ in range(8)]
        until(lambda: sum(answer.done() for answer in answers) == 5)
        other = function.send("third", "team-b")
        function.release.set()
        assert sorted(answer.result().status for answer in answers)[:2] == [200, 202]
        assert other.result().status == 200

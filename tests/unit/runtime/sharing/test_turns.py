"""One namespace's burst does not hold up another namespace's event, and one event does not write for long."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from muster.cluster import execute
from muster.objects.meta import ObjectRef
from muster.policy.model import Plan
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.sharing.parsing_order import SmallestFirst
from muster.runtime.sharing.turns import TURN_SECONDS, NamespaceBusyError, Turns
from tests.unit.runtime.fakes import BODY, DONE, OWNER, FakeCluster, a_handler, a_step, an_event

WRITE_SECONDS = 0.004
"""A write of a real API server."""
BURST = 60
GROUPS = 512


class SlowCluster(FakeCluster):
    """Takes as long for a write as a real API server, and counts the writes by namespace."""

    def write(self, action: Any, manager: str) -> Any:
        """Take some time."""
        time.sleep(WRITE_SECONDS)
        return super().write(action, manager)


def groups_of(subject: ObjectRef) -> Plan:
    """A plan of as many writes as an owner may have PodGroups."""
    count = GROUPS if subject.namespace == "hostile" else 1
    targets = (replace(subject, name=f"group-{number}") for number in range(count))
    return replace(DONE, actions=tuple(replace(DONE.actions[0], target=target) for target in targets))


def event_of(namespace: str, number: int) -> tuple[dict[str, str], bytes]:
    """An event about a pod of a namespace."""
    headers, _ = an_event(id=f"{namespace}-{number}")
    body = {**BODY, "metadata": {**BODY["metadata"], "namespace": namespace, "name": f"pod-{number}"}}
    return headers, json.dumps(body).encode()


def statuses(answers: list[Future[HttpAnswer]]) -> set[tuple[int, str]]:
    """Status and reason of each answer."""
    done = (answer.result() for answer in answers)
    return {(answer.status, json.loads(answer.body)["reason"] if answer.body else "") for answer in done}


@pytest.mark.thorough
def test_a_burst_of_one_namespace_does_not_hold_up_another() -> None:
    """Sixty events of 512 writes each arrive first; the other namespace is answered within a second."""
    step = a_step(plan=lambda subject, _now: groups_of(subject), execute=execute.in_order)
    handler = a_handler(step, SlowCluster(), waiting=27)
    with ThreadPoolExecutor(BURST + 1) as senders:
        burst = [senders.submit(handler.handle, *event_of("hostile", number)) for number in range(BURST)]
        time.sleep(0.1)
        began = time.monotonic()
        answer = handler.handle(*event_of("quiet", 0))
        seconds = time.monotonic() - began
        assert statuses(burst) == {(503, "WriteLimit"), (503, "NamespaceBusy")}
    assert answer.status == 200
    assert seconds < 1


@pytest.mark.thorough
def test_bursts_of_two_namespaces_do_not_hold_up_a_third() -> None:
    """Events that remove two thousand gates each pause for it, and go on."""
    step = a_step(plan=lambda subject, _now: many_writes(subject), execute=execute.in_parallel)
    handler = a_handler(step, SlowCluster(), waiting=27, deadline_seconds=20)
    with ThreadPoolExecutor(17) as senders:
        bursts = [
            senders.submit(handler.handle, *event_of(f"hostile-{number % 2}", number)) for number in range(6)
        ]
        time.sleep(0.5)
        began = time.monotonic()
        answer = handler.handle(*event_of("quiet", 0))
        seconds = time.monotonic() - began
        assert {burst.result().status for burst in bursts} == {200}
    assert answer.status == 200
    assert seconds < 1


def many_writes(subject: ObjectRef) -> Plan:
    """A plan that removes the gates of a large gang."""
    count = 2000 if subject.namespace.startswith("hostile") else 1
    return replace(groups_of(subject), actions=DONE.actions[:1] * count)


def test_a_pause_ends_with_the_deadline() -> None:
    """The event is delivered again; its turn is not held any more."""
    now = [0.0]
    turns = Turns(workers=1, waiting=8, clock=lambda: now[0])
    with turns.turn("hostile", 1) as turn, ThreadPoolExecutor(2) as others:
        stop = threading.Event()
        waiting = [others.submit(_hold, turns, name, stop) for name in ("quiet", "third")]
        while sum(map(len, turns._waiting.values())) < 1:
            time.sleep(0.001)
        assert turn.pause(0.05), "it has just begun"
        now[0] += TURN_SECONDS
        assert not turn.pause(0.05)
        assert not turn.begun.is_set()
        assert not turn.pause(0.05), "nor for other threads of the event"
        stop.set()
        assert [done.result() for done in waiting] == [None, None]
    assert not turns._in_work
    assert turns._paused == 0


def _hold(turns: Turns, namespace: str, stop: threading.Event) -> None:
    with turns.turn(namespace, 5):
        stop.wait(5)


@contextmanager
def held(turns: Turns, namespace: str, count: int) -> Iterator[list[threading.Thread]]:
    """Turns of a namespace that are held until the end."""
    release, begun = threading.Event(), threading.Semaphore(0)

    def hold() -> None:
        with turns.turn(namespace, 5):
            begun.release()
            release.wait(5)

    threads = [threading.Thread(target=hold) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=5)
    yield threads
    release.set()
    for thread in threads:
        thread.join()


def test_one_worker_is_for_other_namespaces() -> None:
    """A namespace that has all of its workers waits; another one begins at once, a third one waits."""
    turns = Turns(workers=2, waiting=8)
    with held(turns, "hostile", 2):
        with pytest.raises(NamespaceBusyError), turns.turn("hostile", 0.01):
            pass
        with held(turns, "quiet", 1), pytest.raises(NamespaceBusyError), turns.turn("third", 0.01):
            pass
        with turns.turn("third", 0.01):
            pass
    with turns.turn("hostile", 0):
        pass


def test_an_event_without_a_place_to_wait_is_sent_back() -> None:
    """At once, without waiting."""
    turns = Turns(workers=1, waiting=3)
    with ThreadPoolExecutor(3) as waiting, held(turns, "hostile", 1):
        for _ in range(3):
            waiting.submit(_pass, turns, "hostile")
        while sum(map(len, turns._waiting.values())) < 3:
            time.sleep(0.001)
        began = time.monotonic()
        with pytest.raises(NamespaceBusyError), turns.turn("hostile", 5):
            pass
        assert time.monotonic() - began < 1


def _pass(turns: Turns, namespace: str) -> None:
    with turns.turn(namespace, 5):
        pass


def test_waiting_namespaces_take_turns() -> None:
    """Ten events of one namespace wait; one of another that came later is the next but one at most."""
    turns, order = Turns(workers=1, waiting=40), list[str]()

    def note(namespace: str) -> None:
        with turns.turn(namespace, 5):
            order.append(namespace)
            time.sleep(0.01)

    with ThreadPoolExecutor(11) as waiting, held(turns, "first", 1), held(turns, "second", 1):
        for number, namespace in enumerate([*["hostile"] * 10, "quiet"]):
            waiting.submit(note, namespace)
            while sum(map(len, turns._waiting.values())) <= number:
                time.sleep(0.001)
    assert order.index("quiet") <= 2


def test_one_body_is_parsed_at_a_time() -> None:
    """4 MiB of JSON take 30 MiB while they are parsed, which four workers did at once."""
    active, most = 0, 0

    def other_events(_event: Any) -> ObjectRef:
        nonlocal active, most
        active += 1
        most = max(most, active)
        time.sleep(0.02)
        active -= 1
        return OWNER

    handler = a_handler(a_step(other_events=other_events))
    headers, _ = an_event(type="dev.example.other")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _number: handler.handle(headers, b"{}"), range(8)))
    assert most == 1
    assert {answer.status for answer in answers} <= {200, 202, 204}


def _parsed_in_order(sizes: dict[str, int], seconds_between: float = 0.0) -> list[str]:
    """The order in which bodies are parsed that came one after the other while another one was parsed."""
    now, order = 0.0, []
    turns = SmallestFirst(lambda: now)

    def parse(name: str) -> None:
        with turns.turn(sizes[name], 5):
            order.append(name)

    with turns.turn(1, 5):
        threads = []
        for name in sizes:
            threads.append(threading.Thread(target=parse, args=(name,)))
            threads[-1].start()
            while len(turns._waiting) < len(threads):
                time.sleep(0.001)
            now += seconds_between
    for thread in threads:
        thread.join(5)
    return order


def test_small_bodies_are_parsed_before_large_ones() -> None:
    """Sixty bodies of 200 KB, of 0.2 s each, would hold up a pod's event for longer than its broker waits."""
    assert _parsed_in_order({"large": 200_000, "larger": 600_000, "pod": 5_000}) == ["pod", "large", "larger"]


def test_large_bodies_have_their_turn() -> None:
    """A body of 200 KB waits as if it had come 49 seconds later."""
    sizes = {"large": 200_000, "pod": 5_000, "another pod": 5_000}
    assert _parsed_in_order(sizes, seconds_between=30) == ["pod", "large", "another pod"]


def test_many_small_bodies_do_not_keep_out_a_large_one() -> None:
    """Every fourth turn is that of the body that has waited longest."""
    sizes = {"large": 200_000} | {f"pod {number}": 5_000 for number in range(8)}
    assert "large" in _parsed_in_order(sizes)[:4]


def test_an_event_that_is_not_parsed_in_time_comes_again() -> None:
    """Its broker would have given up on it."""
    handler = a_handler(deadline_seconds=0.1)
    with handler._workers.reading.turn(1, 5):
        answer = handler.handle(*an_event())
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "DeadlineExceeded")
    assert handler.handle(*an_event()).status in {200, 202}

"""The event loop of func's server goes first, and one sweep at a time computes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Barrier, Event
from typing import Any

import pytest

from muster.cluster.http.answer_json import parse_answer
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.sharing import computing
from muster.runtime.sharing.computing import (
    LONGEST_REST_SECONDS,
    LONGEST_WAIT_SECONDS,
    REST,
    EventLoop,
    FairLock,
    SpacedWork,
    SweepTurn,
)
from muster.runtime.sharing.deadline_client import DeadlineClient, DeadlineExceeded
from muster.runtime.sharing.workers import Workers
from tests.unit.runtime.fakes import NOW, FakeCluster, a_step, an_event
from tests.unit.runtime.sweeps.test_sweep import pods, swept


def waited(action: Callable[[], object]) -> float:
    """Return the seconds that an action took."""
    began = time.monotonic()
    action()
    return time.monotonic() - began


def waited_for_a_blocked(loop: EventLoop, seconds: float, *, in_work: bool = True) -> float:
    """Return how long a thread waited for an event loop that is blocked for so many seconds."""

    async def serve() -> float:
        with loop.request():
            await asyncio.sleep(0.05)
            if in_work:
                return await block()
        await asyncio.sleep(0.05)
        return await block()

    def begin() -> float:
        time.sleep(0.1)
        return waited(loop.go_first)

    async def block() -> float:
        with ThreadPoolExecutor() as threads:
            other = threads.submit(begin)
            time.sleep(seconds)  # noqa: ASYNC251 - the loop is to be blocked
            await asyncio.sleep(0.05)
            return other.result()

    return asyncio.run(serve())


@pytest.mark.thorough
def test_other_threads_wait_for_a_late_loop() -> None:
    """It may have requests to read and probes to answer."""
    assert 0.1 < waited_for_a_blocked(EventLoop(), 0.4) < 0.45


@pytest.mark.thorough
def test_a_wait_for_the_loop_ends() -> None:
    """A loop that is late for longer is not late because of them."""
    assert waited_for_a_blocked(EventLoop(), 1.0) < LONGEST_WAIT_SECONDS + 0.2


@pytest.mark.thorough
def test_nobody_waits_for_a_loop_without_requests() -> None:
    """It is due only while there are any, so that an idle process does nothing."""
    assert waited_for_a_blocked(EventLoop(), 0.4, in_work=False) < 0.05


@pytest.mark.thorough
def test_nobody_waits_for_a_loop_that_has_ended() -> None:
    """It is blocked until all events have ended."""
    loop = EventLoop()
    loop.end()
    assert waited_for_a_blocked(loop, 0.4) < 0.05


def test_threads_get_a_lock_in_the_order_in_which_they_ask() -> None:
    """A thread that asks again at once comes behind those that wait."""
    lock, order = FairLock(), list[int]()

    def take(number: int) -> None:
        assert lock.acquire(5)
        order.append(number)
        lock.release()

    assert lock.acquire(0)
    with ThreadPoolExecutor() as threads:
        for number in range(4):
            threads.submit(take, number)
            while len(lock._waiting) <= number:
                time.sleep(0.001)
        lock.release()
    assert order == [0, 1, 2, 3]


def test_a_lock_is_not_given_after_the_wait() -> None:
    """Else it would never be released."""
    lock = FairLock()
    assert lock.acquire(0)
    assert not lock.acquire(0.01)
    lock.release()
    assert lock.acquire(0)


def a_turn(lock: FairLock, seconds: float = 5, *, events_wait: bool = False) -> SweepTurn:
    """The turn of a sweep."""
    return SweepTurn(lock, EventLoop(), lambda: events_wait, lambda: seconds)


def test_sweeps_compute_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that plans thousands of objects does not hold up the others."""
    monkeypatch.setattr(computing, "SLICE_SECONDS", 0.0)
    lock, order, begin = FairLock(), list[str](), Barrier(2)

    def sweep(name: str) -> None:
        turn = a_turn(lock)
        begin.wait()
        with turn.held():
            for _ in range(5):
                order.append(name)
                time.sleep(0.02)
                turn.pause()

    with ThreadPoolExecutor() as threads:
        list(threads.map(sweep, "ab"))
    assert "".join(order) in {"ab" * 5, "ba" * 5}


def take_and_release(lock: FairLock) -> None:
    """Compute for no time, as another sweep."""
    assert lock.acquire(5)
    lock.release()


@pytest.mark.parametrize(("events_wait", "rest"), [(True, REST * 0.06), (False, 0.0)])
def test_a_sweep_rests_while_events_wait(*, events_wait: bool, rest: float) -> None:
    """After each slice, and no other sweep computes meanwhile: together they take a tenth of the time."""
    lock = FairLock()
    turn = a_turn(lock, events_wait=events_wait)
    with turn.held(), ThreadPoolExecutor() as threads:
        other = threads.submit(waited, lambda: take_and_release(lock))
        time.sleep(0.06)
        assert rest <= waited(turn.pause) < rest + 0.4
    assert other.result() > rest


def test_a_rest_ends_at_the_deadline() -> None:
    """It is no reason to answer late."""
    turn = a_turn(FairLock(), seconds=0.1, events_wait=True)
    with turn.held():
        time.sleep(0.06)
        assert waited(turn.pause) < 0.3


@pytest.mark.parametrize("way", ["resume", "given_up"])
def test_a_sweep_rests_in_no_call(way: str) -> None:
    """It may hold the lock of large pages there, for which events wait."""
    turn = a_turn(FairLock(), events_wait=True)
    with turn.held():
        time.sleep(0.06)
        if way == "resume":
            assert waited(turn.resume) < 0.1
        else:
            with turn.given_up():
                began = time.monotonic()
            assert time.monotonic() - began < 0.1


class Pieces:
    """Pieces of work on a clock that only sleep and work move on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, besides: float = 0.0) -> None:
        self.now = self.cpu = 0.0
        self.are_events = True
        for name, value in (
            ("monotonic", lambda: self.now), ("thread_time", lambda: self.cpu), ("sleep", self.pass_time)
        ):  # fmt: skip
            monkeypatch.setattr(time, name, value)
        self.work = SpacedWork(lambda: self.are_events, besides)

    def pass_time(self, seconds: float) -> None:
        """Move the clock on."""
        self.now += seconds

    def run(self, cpu: float, seconds: float = 5) -> None:
        """Run a piece of so much CPU, which has to wait for so many seconds at most."""
        with self.work.piece(1, seconds):
            self.cpu += cpu
            self.now += cpu


@pytest.mark.parametrize("besides", [0.0, 0.01])
def test_small_work_takes_a_tenth_of_the_time_while_there_are_events(
    besides: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what comes beside it, such as writing a letter."""
    pieces = Pieces(monkeypatch, besides)
    for _ in range(11):
        pieces.run(0.02)
    assert pieces.now == pytest.approx(11 * 0.02 + 10 * REST * (0.02 + besides))


def test_small_work_waits_no_longer_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next piece runs as if it had not come."""
    pieces = Pieces(monkeypatch)
    pieces.run(0.02)
    with pytest.raises(DeadlineExceeded):
        pieces.run(0.02, seconds=REST * 0.02 / 2)
    pieces.run(0.02)
    assert pieces.now == pytest.approx(2 * 0.02 + REST * 0.02)


def test_small_work_rests_for_no_one_without_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """While there are no events, and afterwards for a second at most."""
    pieces = Pieces(monkeypatch, besides=1.0)
    pieces.are_events = False
    for _ in range(100):
        pieces.run(0.0)
    assert pieces.now == 0.0
    pieces.are_events = True
    pieces.run(0.0)
    assert pieces.now <= LONGEST_REST_SECONDS


def test_a_small_piece_waits_for_the_rest_of_one_large_piece() -> None:
    """Ten letters of a megabyte a second kept all others from being stored."""
    work, order = SpacedWork(lambda: False, 0.0), list[int]()

    def run(size: int) -> None:
        with work.piece(size, 5):
            order.append(size)

    with ThreadPoolExecutor() as threads, work.piece(1, 5):
        for number, size in enumerate((1_000_000, 1_000_001, 1_000), 1):
            threads.submit(run, size)
            while len(work._line._waiting) < number:
                time.sleep(0.001)
    assert order[0] == 1_000


def is_free(lock: FairLock) -> bool:
    """Whether another sweep may compute."""
    free = lock.acquire(0)
    if free:
        lock.release()
    return free


def test_a_sweep_that_waits_for_the_api_server_lets_another_compute() -> None:
    """Until it has its answer."""
    lock = FairLock()
    turn = a_turn(lock)
    with turn.held():
        assert not is_free(lock)
        with turn.given_up():
            assert is_free(lock)
        assert not is_free(lock)
    assert is_free(lock)


def test_threads_of_a_sweep_keep_no_turn() -> None:
    """patch_pods writes to several pods at once; a turn that stayed with them would end all later sweeps."""
    lock, first_is_away, go_on = FairLock(), Event(), Event()
    turn = a_turn(lock, seconds=0.3)

    def call_first() -> None:
        with turn.given_up():
            first_is_away.set()
            go_on.wait()

    def call() -> None:
        with turn.given_up():
            pass

    with turn.held(), ThreadPoolExecutor() as writers:
        first = writers.submit(call_first)
        first_is_away.wait()
        assert lock.acquire(0), "another sweep computes"
        go_on.set()
        time.sleep(0.05)
        second = writers.submit(call)
        time.sleep(0.05)
        lock.release()
        first.result()
        second.result()
    assert is_free(lock)


def test_a_sweep_without_a_turn_goes_on() -> None:
    """At its deadline, so that it ends as usual."""
    lock = FairLock()
    assert lock.acquire(0)
    with a_turn(lock, seconds=0).held():
        assert not is_free(lock)
    assert not is_free(lock), "it released what it did not have"


def test_one_function_of_a_process_plans_in_a_sweep() -> None:
    """Six at once took the interpreter's lock from the event loop: no probe was answered for 50 s."""
    workers, planning, most = Workers(12, 27), list[str](), list[int]()

    def plan(inputs: ObjectRef, _now: datetime) -> NoOp:
        planning.append(inputs.name)
        most.append(len(planning))
        time.sleep(0.005)
        planning.pop()
        return NoOp(Reason.UP_TO_DATE)

    step = a_step(responsible_for=lambda _cluster: pods(10), plan=plan)
    settings = Settings(sweep_jitter_seconds=0.0)
    handlers = [Handler(step, FakeCluster(), settings, lambda: NOW, workers=workers) for _ in range(3)]
    with ThreadPoolExecutor() as threads:
        answers = list(threads.map(swept, handlers))
    assert [answer.status for answer in answers] == [202] * 3
    assert (len(most), max(most)) == (30, 1)


def test_a_sweep_pauses_between_the_objects_that_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 2,000 JobSets in a row took 20 s, in which events of large gangs got no page."""
    pauses, before_plans = list[int](), list[int]()
    monkeypatch.setattr(SweepTurn, "pause", lambda _: pauses.append(1))

    def plan(_inputs: ObjectRef, _now: datetime) -> NoOp:
        before_plans.append(len(pauses))
        return NoOp(Reason.UP_TO_DATE)

    step = a_step(responsible_for=lambda _cluster: pods(10), plan=plan)
    swept(Handler(step, FakeCluster(), Settings(sweep_jitter_seconds=0.0), lambda: NOW))
    assert before_plans[0] > 10


def test_a_sweep_parses_pages_in_its_turn() -> None:
    """A page of four megabytes keeps all other threads from running for a tenth of a second."""
    lock = FairLock()
    turn = a_turn(lock)
    cluster = DeadlineClient(FakeCluster(), 5)
    cluster.compute_with(turn.given_up, turn.resume)
    free: list[bool] = []
    with turn.held(), turn.given_up(), cluster.one_large_page():
        free.append(is_free(lock))
        parse_answer(b"{}")
        free.append(is_free(lock))
    assert free == [True, False]


def test_an_event_lets_the_loop_go_first_before_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them it computes, which nobody can interrupt."""
    workers, cluster = Workers(12, 27), FakeCluster()
    calls_before: list[int] = []
    monkeypatch.setattr(workers.loop, "go_first", lambda: calls_before.append(len(cluster.calls)))
    handler = Handler(a_step(), cluster, Settings(), lambda: NOW, workers=workers)
    handler.handle(*an_event())
    assert len(calls_before) == len([call for call in cluster.calls if call != "refresh"]) > 0


def test_a_sweep_waits_for_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it begins, after each call, and after each slice."""
    workers, waits = Workers(12, 27), list[Any]()
    monkeypatch.setattr(workers.loop, "go_first", lambda: waits.append(None))
    step = a_step(responsible_for=lambda _cluster: pods(3), plan=lambda _inputs, _now: NoOp("UpToDate"))
    handler = Handler(step, FakeCluster(), Settings(sweep_jitter_seconds=0.0), lambda: NOW, workers=workers)
    assert swept(handler).status == 202
    assert len(waits) == 1 + 3

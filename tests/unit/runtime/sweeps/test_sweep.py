"""A sweep runs the step for everything it is responsible for."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from muster.cluster import errors
from muster.cluster.observe.list_cache import Listing
from muster.cluster.paging import Page
from muster.objects.meta import ObjectRef
from muster.objects.resources import PODS
from muster.policy.model import NoOp, Plan
from muster.policy.reasons import Reason
from muster.runtime import sweep
from muster.runtime.deadline_client import DeadlineExceeded
from muster.runtime.handle import Handler
from muster.runtime.http.responses import HttpAnswer
from tests.unit.runtime.fakes import DONE, FakeCluster, a_handler, a_step, an_event, raises


def pods(count: int) -> list[ObjectRef]:
    """So many pods."""
    return [ObjectRef("v1", "Pod", "team-a", f"p{number}") for number in range(count)]


def swept(handler: Handler, event_id: str = "7") -> HttpAnswer:
    """The answer to a sweep event."""
    headers, _ = an_event(type="dev.muster.sweep", id=event_id)
    return handler.handle(headers, b"")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    """Outcome, reason and object of each log line."""
    lines: list[dict[str, Any]] = [record.__dict__["fields"] for record in caplog.records]
    return [(line["outcome"], line["reason"], line.get("name", "")) for line in lines]


def counted(handler: Handler) -> dict[str, int]:
    """How many objects the handler's sweeps have looked at so far, by reason, as its metrics have it."""
    families = text_string_to_metric_families(handler.metrics.exposition().decode())
    samples = [sample for family in families for sample in family.samples]
    return {
        sample.labels["reason"]: int(sample.value)
        for sample in samples
        if sample.name == "muster_swept_objects_total"
    }


@pytest.fixture(autouse=True)
def _hear_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "muster")


def test_each_object_has_its_run(caplog: pytest.LogCaptureFixture) -> None:
    """Every object is observed; the one answer is 202, and the one line counts what came of them."""
    cluster = FakeCluster()

    def plan(inputs: ObjectRef, _now: Any) -> Any:
        return DONE if inputs.name == "p1" else NoOp(Reason.UP_TO_DATE)

    handler = a_handler(a_step(responsible_for=lambda _cluster: pods(3), plan=plan), cluster)
    assert swept(handler) == HttpAnswer(202, {}, b"")
    assert sorted(call for call in cluster.calls if call.startswith("get")) == [
        "get pods team-a/p0",
        "get pods team-a/p1",
        "get pods team-a/p2",
    ]
    assert lines(caplog) == [("done", "GatesLifted", "p1"), ("done", "Swept", "")]
    assert counted(handler) == {"GatesLifted": 1, "UpToDate": 2}


def test_failure_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A bug, a conflict and a refusal each get their line; the rest is done, and nothing comes again."""
    failures = {"p0": KeyError("x"), "p1": errors.Conflict("late"), "p2": errors.Forbidden("no role")}

    def observe(_cluster: Any, subject: ObjectRef) -> ObjectRef:
        if subject.name in failures:
            raise failures[subject.name]
        return subject

    step = a_step(responsible_for=lambda _cluster: pods(4), observe=observe)
    handler = a_handler(step)
    assert swept(handler).status == 202
    assert sorted(lines(caplog)) == [
        ("bug", "UnexpectedError", "p0"),
        ("come_again", "Conflict", "p1"),
        ("come_again", "Forbidden", "p2"),
        ("done", "GatesLifted", "p3"),
        ("done", "Swept", ""),
    ]
    assert counted(handler) == {"Conflict": 1, "Forbidden": 1, "GatesLifted": 1, "UnexpectedError": 1}


def test_sweep_that_cannot_list_comes_again() -> None:
    """Where the list itself fails, nothing was looked at: the event comes again."""
    cluster = FakeCluster(on_read=errors.Unavailable("away"))
    answer = swept(a_handler(a_step(responsible_for=lambda door: door.list(PODS)), cluster))
    assert (answer.status, json.loads(answer.body)["reason"]) == (503, "Unavailable")


def test_list_that_fails_halfway_comes_again() -> None:
    """The objects of a sweep may be found one by one; a failure on the way is the sweep's."""
    step = a_step(responsible_for=lambda _cluster: map(raises(errors.Unavailable("away")), [1]))
    assert swept(a_handler(step)).status == 503


def test_nothing_to_look_at(caplog: pytest.LogCaptureFixture) -> None:
    """An empty cluster is swept in peace."""
    assert swept(a_handler(a_step(responsible_for=lambda _cluster: []))).status == 202
    assert lines(caplog) == [("nothing", "Swept", "")]


def test_versions_are_discovered_again() -> None:
    """A sweep forgets which API versions are served: an API switched on later is used without a restart."""
    cluster = FakeCluster()
    swept(a_handler(a_step(), cluster))
    assert cluster.calls[0] == "refresh"


def test_limit_bounds_a_sweep_and_the_next_goes_on() -> None:
    """Each sweep looks at `sweep_limit` objects and begins after the last one's: all have their turn."""
    cluster = FakeCluster()
    handler = a_handler(a_step(responsible_for=lambda _cluster: pods(10)), cluster, sweep_limit=3)
    totals = []
    for number in range(4):
        swept(handler, str(number))
        totals.append(counted(handler))
    looked_at = [call.split("/")[1] for call in cluster.calls if call.startswith("get")]
    assert sorted(looked_at) == sorted(f"p{number}" for number in range(10))
    assert totals == [{"GatesLifted": total} for total in (3, 6, 9, 10)]


def test_after_restarts_the_last_object_has_its_turn_too() -> None:
    """A function that is started anew for every sweep begins elsewhere each time."""
    cluster = FakeCluster()
    step = a_step(responsible_for=lambda _cluster: pods(10))
    for number in range(40):
        swept(a_handler(step, cluster, sweep_limit=3), str(number))
    assert len({call for call in cluster.calls if call.startswith("get")}) == 10


def test_retry_of_a_sweep_begins_where_it_began() -> None:
    """The id says where a round begins, so a replay of the same events does the same."""
    step = a_step(responsible_for=lambda _cluster: pods(10))
    first, second = FakeCluster(), FakeCluster()
    for cluster in (first, second):
        swept(a_handler(step, cluster, sweep_limit=3), "a")
    assert first.calls == second.calls


def test_time_bounds_a_sweep() -> None:
    """When the time is over the rest is left to the next sweep, without trying each."""

    def observe(bounded: Any, subject: ObjectRef) -> ObjectRef:
        while not bounded.time_is_over:
            pass
        return subject

    step = a_step(
        responsible_for=lambda _cluster: pods(3), observe=observe, plan=lambda *_: NoOp(Reason.FINISHED)
    )
    handler = a_handler(step, deadline_seconds=0.02)
    assert swept(handler).status == 202
    assert counted(handler) == {"Finished": 1}


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [
        pytest.param(sweep.ROUND_SECONDS, 1, id="young lists are gone on with"),
        pytest.param(0.0, 3, id="old ones are read anew"),
    ],
)
def test_how_old_the_lists_of_a_round_may_be(
    seconds: float, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made or changed since they were read would be out of sight as long."""
    monkeypatch.setattr(sweep, "ROUND_SECONDS", seconds)
    listed: list[None] = []

    def responsible_for(_cluster: Any) -> list[ObjectRef]:
        listed.append(None)
        return pods(5)

    handler = a_handler(a_step(responsible_for=responsible_for), sweep_limit=1)
    for number in range(3):
        swept(handler, str(number))
    assert len(listed) == rounds


def test_lists_that_take_longer_than_a_round_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of large objects of one tenant would have them begun anew for ever."""
    monkeypatch.setattr(sweep, "ROUND_SECONDS", 0.05)

    def page(*_: Any, token: str = "", **__: Any) -> Page:
        time.sleep(0.02)
        return Page([], "" if len(token) == 9 else f"{token}x")

    cluster, step = FakeCluster(), a_step(lists=(Listing(PODS, None),), responsible_for=lambda _: pods(1))
    cluster.page = page  # type: ignore[method-assign]
    handler = a_handler(step, cluster, deadline_seconds=0.03)
    assert all(swept(handler, str(number)).status == 202 for number in range(10))
    assert counted(handler)


def test_one_object_that_takes_too_long_does_not_keep_the_others_from_their_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is put back until a sweep begins with it; then it is reported and the sweep goes on."""
    looked_at = []

    def observe(bounded: Any, subject: ObjectRef) -> ObjectRef:
        looked_at.append(subject.name)
        while subject.name == "p0" and not bounded.time_is_over:
            time.sleep(0.01)
        bounded.get(PODS, subject.name, subject.namespace)
        return subject

    step = a_step(responsible_for=lambda _cluster: pods(3), observe=observe)
    handler = a_handler(step, deadline_seconds=0.1)
    for number in range(4):
        swept(handler, str(number))
    assert set(looked_at) == {"p0", "p1", "p2"}
    assert ("come_again", "DeadlineExceeded", "p0") in lines(caplog)


@pytest.mark.parametrize("event_id", ["1", "2", "3", "4"])
def test_namespaces_take_turns_in_a_sweep(event_id: str) -> None:
    """A thousand Jobs of one namespace, each read live, would hold up another's for many sweeps."""
    hostile = [ObjectRef("v1", "Pod", "hostile", f"p{number}") for number in range(1000)]
    cluster = FakeCluster()
    step = a_step(
        responsible_for=lambda _cluster: [*hostile, *pods(3)], plan=lambda *_: NoOp(Reason.UP_TO_DATE)
    )
    handler = a_handler(step, cluster, sweep_limit=6)
    swept(handler, event_id)
    looked_at = [call for call in cluster.calls if call.startswith("get")]
    assert sum("team-a/" in call for call in looked_at) == 3
    assert len(set(looked_at)) == 6


def test_an_object_that_takes_long_counts_as_many_turns() -> None:
    """Ten objects of one namespace, each of a tenth of a second, do not hold up the others by a second."""
    hostile = [ObjectRef("v1", "Pod", "hostile", f"p{number}") for number in range(10)]

    def plan(inputs: ObjectRef, _now: Any) -> NoOp:
        time.sleep(0.1 if inputs.namespace == "hostile" else 0)
        return NoOp(Reason.UP_TO_DATE)

    cluster = FakeCluster()
    step = a_step(responsible_for=lambda _cluster: [*hostile, *pods(7)], plan=plan)
    swept(a_handler(step, cluster, sweep_limit=9))
    looked_at = [call for call in cluster.calls if call.startswith("get")]
    assert sum("team-a/" in call for call in looked_at) == 7


@pytest.mark.parametrize("seconds", [0.0, 0.06])
def test_an_object_whose_writes_never_end_keeps_no_round_open(seconds: float) -> None:
    """Whoever deletes its groups again and again would keep the lost events of others from being seen."""
    rounds: list[int] = []

    def responsible_for(_cluster: Any) -> list[ObjectRef]:
        rounds.append(len(rounds))
        return pods(2)

    def plan(inputs: ObjectRef, _now: Any) -> Plan:
        time.sleep(seconds)
        return replace(DONE, reason=Reason.WRITE_LIMIT if inputs.name == "p0" else DONE.reason)

    step = a_step(responsible_for=responsible_for, plan=plan, observe=_read)
    handler = a_handler(step, sweep_limit=5 if not seconds else 1000, deadline_seconds=0.5)
    for number in range(3):
        swept(handler, str(number))
    assert len(rounds) == 3


@pytest.mark.thorough
@pytest.mark.parametrize("limit", ["ALL_SLOW_SECONDS", "ALL_LARGE_SECONDS"])
def test_namespaces_that_take_long_keep_no_round_open(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that each take a second to plan would keep the lost events of others from being seen."""
    for name, seconds in (("SLOW_SECONDS", 0.1), ("LARGE_SECONDS", 0.04), (limit, 0.3)):
        monkeypatch.setattr(sweep, name, seconds)
    hostile = [ObjectRef("v1", "Pod", f"hostile-{number % 2}", f"p{number}") for number in range(100)]
    seen: list[list[ObjectRef]] = []

    def responsible_for(_cluster: Any) -> list[ObjectRef]:
        seen.append([])
        return [*hostile, *pods(7)]

    def plan(inputs: ObjectRef, _now: Any) -> NoOp:
        seen[-1].append(inputs)
        time.sleep(0.05 if inputs.namespace.startswith("hostile") else 0)
        return NoOp(Reason.UP_TO_DATE)

    handler = a_handler(
        a_step(responsible_for=responsible_for, plan=plan, observe=_read), deadline_seconds=0.5
    )
    for number in range(3):
        swept(handler, str(number))
    assert len(seen) == 3
    assert all(set(pods(7)) < set(looked_at) for looked_at in seen)
    assert len({first for first, *_ in seen}) > 1
    assert {looked_at[-1].namespace for looked_at in seen} <= {"hostile-0", "hostile-1"}


def test_small_objects_of_one_namespace_may_take_more_than_large_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """10,000 ordinary Jobs are all reached in one round."""
    monkeypatch.setattr("muster.runtime.sweep.SLOW_SECONDS", 0.1)
    monkeypatch.setattr("muster.runtime.sweep.LARGE_SECONDS", 1.0)
    monkeypatch.setattr("muster.runtime.sweep.ALL_LARGE_SECONDS", 0.1)
    many = [ObjectRef("v1", "Pod", "many", f"p{number}") for number in range(30)]
    looked_at: list[ObjectRef] = []

    def plan(inputs: ObjectRef, _now: Any) -> NoOp:
        looked_at.append(inputs)
        time.sleep(0.02)
        return NoOp(Reason.UP_TO_DATE)

    handler = a_handler(
        a_step(responsible_for=lambda _cluster: many, plan=plan, observe=_read), deadline_seconds=0.4
    )
    for number in range(4):
        swept(handler, str(number))
    assert len(set(looked_at[: len(many)])) == len(many)


def test_an_object_beyond_the_deadline_counts_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a whole sweep; it is put back, which is no reason to count it less."""
    monkeypatch.setattr("muster.runtime.sweep.SLOW_SECONDS", 0.1)
    monkeypatch.setattr("muster.runtime.sweep.ALL_LARGE_SECONDS", 0.3)
    hostile = [ObjectRef("v1", "Pod", "hostile", f"p{number}") for number in range(9)]
    rounds: list[int] = []

    def responsible_for(_cluster: Any) -> list[ObjectRef]:
        rounds.append(0)
        return [*hostile, *pods(2)]

    def plan(inputs: ObjectRef, _now: Any) -> NoOp:
        if inputs.namespace == "hostile":
            time.sleep(0.2)
            raise DeadlineExceeded("a call is not made beyond the deadline")
        return NoOp(Reason.UP_TO_DATE)

    handler = a_handler(
        a_step(responsible_for=responsible_for, plan=plan, observe=_read), deadline_seconds=0.2
    )
    for number in range(5):
        swept(handler, str(number))
    assert len(rounds) >= 2


@pytest.mark.thorough
@pytest.mark.parametrize("event_id", ["1", "2", "3", "4"])
def test_an_object_beyond_the_deadline_comes_again_after_other_namespaces(
    event_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Writes behind a slow webhook of one namespace would take two whole sweeps before others have a turn."""
    slow = [ObjectRef("v1", "Pod", f"slow-{number}", f"s{number}") for number in range(3)]
    looked_at: list[list[ObjectRef]] = []

    def responsible_for(_cluster: Any) -> list[ObjectRef]:
        looked_at.append([])
        return [*slow, *pods(7)]

    def plan(inputs: ObjectRef, _now: Any) -> NoOp:
        looked_at[-1].append(inputs)
        if inputs in slow:
            time.sleep(0.1)
            raise DeadlineExceeded("a call is not made beyond the deadline")
        return NoOp(Reason.UP_TO_DATE)

    handler = a_handler(a_step(responsible_for=responsible_for, plan=plan, observe=_read))
    while len(looked_at) < 2:
        swept(handler, event_id)
    first_round = looked_at[0]
    assert set(first_round[:10]) == {*slow, *pods(7)}
    assert set(first_round[10:]) == set(slow)
    reported = [line for line in lines(caplog) if line[0] == "come_again"]
    assert set(reported) == {("come_again", "DeadlineExceeded", one.name) for one in slow}


def _read(bounded: Any, subject: ObjectRef) -> ObjectRef:
    bounded.get(PODS, subject.name, subject.namespace)
    return subject

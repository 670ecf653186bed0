"""The lists of events are bounded in memory, whatever the objects of a tenant look like."""

from __future__ import annotations

import gc
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from kubernetes.client.configuration import Configuration

from muster.cluster.http.answer_json import parsed, text_bytes
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, Objects
from muster.cluster.observe.list_cache import Listing
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import Page
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.pods import Pod
from muster.objects.resources import JOBS, PODS
from muster.policy.limits import Limits
from muster.policy.model import NoOp
from muster.policy.owners.job import Job
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.sharing import deadline_client
from muster.runtime.sharing.deadline_client import LARGE_PAGE, DeadlineClient, DeadlineExceeded
from muster.runtime.sharing.list_memory import (
    FREE_BYTES,
    ListMemory,
    NoRoomForObjects,
    SharedListMemory,
    TooManyObjects,
    _estimated,
    _most,
)
from muster.runtime.sharing.workers import Workers
from tests.support.builders import a_pod
from tests.unit.runtime.fakes import BODY, NOW, OWNER, POD, FakeCluster, a_handler, a_step, an_event

MIB = 1024 * 1024
LIMIT = 12 * MIB


def annotated(size: int) -> Object:
    """A pod with a long annotation."""
    return {**BODY, "metadata": {**BODY["metadata"], "annotations": {"x": "x" * size}}}


def with_an_emoji(size: int) -> Object:
    """A pod whose annotation takes four times its bytes once parsed."""
    return {**BODY, "metadata": {**BODY["metadata"], "annotations": {"x": "x" * (size // 4) + "\N{ROCKET}"}}}


def tolerating(size: int) -> Object:
    """A pod with many tolerations, which count as twenty times their bytes."""
    return {**BODY, "spec": {"tolerations": [{"key": "k", "operator": "Exists"}] * (size // 16 // 64)}}


class Members(FakeCluster):
    """Lists the configured number of pods of a shape."""

    def __init__(self, pod: Callable[[int], Object], number: int) -> None:
        super().__init__()
        self._pods = [pod(MIB)] * number

    def list(self, *_: Any, **__: Any) -> Objects:
        """All of them."""
        return self._pods


def a_lister(cluster: FakeCluster) -> Handler:
    """A function that lists pods and has nothing to do."""
    step = a_step(
        observe=lambda cluster, subject: cluster.list(PODS, subject.namespace),
        plan=lambda pods, _now: NoOp(Reason.UP_TO_DATE, f"{len(pods)} pods"),
    )
    return a_handler(step, cluster, limits=Limits(event_bytes=LIMIT))


def reason(handler: Handler) -> set[str]:
    """The reasons of the outcomes so far."""
    lines = handler.metrics.exposition().decode().splitlines()
    found = {known for known in Reason for line in lines if f'reason="{known}"' in line}
    return {str(known) for known in found}


@pytest.mark.parametrize("shape", [annotated, with_an_emoji, tolerating])
@pytest.mark.parametrize(("number", "expected"), [(9, "UpToDate"), (20, "TooManyObjects")])
def test_an_event_whose_objects_need_too_much_memory_is_dropped(
    shape: Callable[[int], Object], number: int, expected: str
) -> None:
    """It is not delivered again, as it would need as much then."""
    handler = a_lister(Members(shape, number))
    assert handler.handle(*an_event()).status == 202
    assert reason(handler) == {expected}


def test_the_memory_is_given_back() -> None:
    """After each event, and also after one that failed."""
    small, large = Members(annotated, 9), Members(annotated, 20)
    for cluster in (small, large):
        handler = a_lister(cluster)
        for _ in range(3):
            handler.handle(*an_event())
        assert reason(handler) == ({"UpToDate"} if cluster is small else {"TooManyObjects"})


def test_events_in_work_share_the_memory() -> None:
    """An event that finds no room is delivered again: 503."""
    shared = SharedListMemory(LIMIT)
    first, second = ListMemory(shared), ListMemory(shared)
    first.add([annotated(MIB)] * 8, "team-a")
    with pytest.raises(NoRoomForObjects, match="MUSTER_LIMIT_EVENT_BYTES"):
        second.add([annotated(MIB)] * 9, "team-b")
    with pytest.raises(TooManyObjects, match="MUSTER_LIMIT_EVENT_BYTES"):
        first.add([annotated(MIB)] * 9, "team-a")
    first.release()
    second.release()
    second.add([annotated(MIB)] * 6, "team-b")
    assert 0 < shared.taken < LIMIT


def test_a_namespace_leaves_memory_for_others() -> None:
    """All of its events together get three quarters of the memory."""
    shared = SharedListMemory(LIMIT)
    first, second, victim = (ListMemory(shared) for _ in range(3))
    first.add([annotated(MIB)] * 8, "team-a")
    with pytest.raises(NoRoomForObjects):
        second.add([annotated(MIB)] * 7, "team-a")
    victim.add([annotated(MIB)] * 5, "team-b")
    for memory in (first, second, victim):
        memory.release()
    assert shared.taken == 0


def test_several_namespaces_leave_memory_for_others() -> None:
    """Each gets three quarters of what is left: two with lists of any size leave a sixteenth."""
    shared = SharedListMemory(64 * MIB)
    assert not shared.take("team-a", 49 * MIB)
    assert shared.take("team-a", 48 * MIB)
    assert not shared.take("team-b", 13 * MIB)
    assert shared.take("team-b", 12 * MIB)
    assert shared.take("victim", 3 * MIB)


def test_usual_events_need_no_room() -> None:
    """So they are never refused because of large ones."""
    usual = ListMemory(SharedListMemory(0))
    usual.add([BODY] * (FREE_BYTES // 8192), "team-a")


@pytest.mark.parametrize("lists", [(), (Listing(JOBS, None),)])
def test_each_object_of_a_sweep_has_the_whole_memory(lists: tuple[Listing, ...]) -> None:
    """The lists of a sweep itself, and those for its other objects, do not count."""
    cluster = Members(annotated, 9)
    seen: list[ObjectRef] = []

    def observe(cluster: Any, subject: ObjectRef) -> Objects:
        seen.append(subject)
        listed: Objects = cluster.list(PODS, labels=f"a={subject.name}")
        return listed

    step = a_step(
        observe=observe,
        lists=lists,
        plan=lambda _pods, _now: NoOp(Reason.UP_TO_DATE, ""),
        responsible_for=lambda cluster: [
            replace(POD, name=f"pod-{number}") for number, _ in enumerate(cluster.list(PODS) * 2)
        ],
    )
    handler = a_handler(step, cluster, limits=Limits(event_bytes=LIMIT))
    headers, _ = an_event(type="dev.muster.sweep")
    assert handler.handle(headers, b"").status == 202
    assert len(seen) == 18
    assert "TooManyObjects" not in reason(handler)


def test_what_a_sweep_kept_in_lists_counts_before_it_is_parsed() -> None:
    """A plan from lists needs all pods of an owner at once; they take ten times their text."""
    names = [{"name": f"pod-{number}", "namespace": POD.namespace} for number in range(80)]
    pods = [{**tolerating(MIB // 4), "metadata": metadata} for metadata in names]
    step = a_step(
        observe=lambda cluster, subject: cluster.list(PODS, subject.namespace),
        lists=(Listing(PODS, None),),
        plan=lambda _pods, _now: NoOp(Reason.UP_TO_DATE, ""),
        responsible_for=lambda _cluster: [POD],
    )
    cluster = Snapshot([])
    cluster.page = lambda *_, **__: Page(pods)  # type: ignore[method-assign]
    cluster.list = _refused  # type: ignore[method-assign]
    handler = a_handler(step, cluster, limits=Limits(event_bytes=LIMIT))
    headers, _ = an_event(type="dev.muster.sweep")
    assert handler.handle(headers, b"").status == 202
    assert "TooManyObjects" in reason(handler)


def _refused(*_: Any, **__: Any) -> Objects:
    raise AssertionError("listed live")


class SameAnswer(Client):
    """A client that gets the same answer to all requests."""

    answer = b""

    def receive(self, *_: Any, **__: Any) -> tuple[int, bytes, Mapping[str, str]]:
        """The answer."""
        return 200, self.answer, {}


def with_items(objects: Objects) -> Object:
    """A list of one page."""
    return {"metadata": {"resourceVersion": "1"}, "items": objects}


def answering(body: Object) -> Versioned:
    """A cluster that answers with an object, whatever is read."""
    client = SameAnswer(Configuration(host="http://127.0.0.1:1"))
    client.answer = json.dumps(body).encode()
    return Versioned(client)


def test_large_objects_that_are_read_one_by_one_count_as_well() -> None:
    """A Job, its Workload and eight groups may have a megabyte of labels each, which take twenty."""
    labels = {f"{number:x}": "" for number in range(15_000)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llama", "labels": labels}}
    cluster = DeadlineClient(answering(job), 10, memory=SharedListMemory(LIMIT))
    cluster.begin()
    assert cluster.get(JOBS, "llama", "team-a")
    assert cluster.get(JOBS, "llama", "team-a")
    with pytest.raises(TooManyObjects):
        cluster.get(JOBS, "llama", "team-a")


def test_dozens_of_objects_that_are_read_one_by_one_count_together() -> None:
    """Forty groups of 64 KiB of small labels each took a function to 530 MiB, of ten namespaces at once."""
    labels = {f"{number:x}": "" for number in range(5_000)}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llama", "labels": labels}}
    assert len(json.dumps(job)) < 64 * 1024
    cluster = DeadlineClient(answering(job), 10, memory=SharedListMemory(LIMIT))
    cluster.begin()
    with pytest.raises(TooManyObjects):
        all(cluster.get(JOBS, "llama", "team-a") for _ in range(40))


def test_large_pages_are_parsed_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes ten times its text until its containers are dropped and the rest is counted."""
    page = with_items([{**BODY, "x": "x" * (LARGE_PAGE + 1)}])
    at_once: list[int] = []
    running: list[int] = []

    def slowly(content: bytes) -> Any:
        running.append(1)
        at_once.append(len(running))
        time.sleep(0.02)
        running.pop()
        return parsed(content)

    monkeypatch.setattr(deadline_client, "parsed", slowly)
    shared = SharedListMemory(LIMIT)
    clients = [DeadlineClient(answering(page), 10, memory=shared) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        listed = list(threads.map(lambda client: client.list(PODS, "team-a"), clients))
    assert [len(objects) for objects in listed] == [1] * 4
    assert at_once == [1] * 4


def test_a_large_page_counts_before_another_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then it takes memory beside all that is reserved; the next may be parsed also after a refusal."""
    noted: list[bool] = []
    count = ListMemory.add

    def noting(memory: ListMemory, *objects: Any) -> None:
        noted.append(memory.page_lock.locked())
        count(memory, *objects)

    monkeypatch.setattr(ListMemory, "add", noting)
    for limit, refused in ((2 * LIMIT, ()), (0, TooManyObjects)):
        shared = SharedListMemory(limit)
        cluster = DeadlineClient(answering(with_items([annotated(5 * MIB)])), 10, memory=shared)
        cluster.begin()
        with pytest.raises(refused) if refused else nullcontext():
            cluster.list(PODS, "team-a")
        assert not shared.page_lock.locked()
    assert noted == [True, True]


def test_no_other_large_page_is_parsed_until_a_sweep_has_kept_what_it_needs() -> None:
    """Its pages do not count."""
    workers = Workers(4, 10)
    noted: list[bool] = []

    def needless(_job: Job) -> bool:
        noted.append(workers.lists.page_lock.locked())
        return True

    step = a_step(lists=(Listing(JOBS, Job, needless=needless),), responsible_for=lambda _cluster: [])
    job = {"metadata": {**BODY["metadata"], "annotations": {"x": "x" * LARGE_PAGE}}}
    settings = Settings(sweep_jitter_seconds=0.0)
    handler = Handler(step, answering(with_items([job])), settings, lambda: NOW, workers=workers)
    headers, _ = an_event(type="dev.muster.sweep")
    assert handler.handle(headers, b"").status == 202
    assert noted == [True]
    assert not workers.lists.page_lock.locked()


def test_the_wait_for_other_large_pages_ends_at_the_deadline() -> None:
    """The broker delivers the event again."""
    shared = SharedListMemory(LIMIT)
    cluster = DeadlineClient(answering(with_items([annotated(2 * MIB)])), 0.05, memory=shared)
    with shared.page_lock, pytest.raises(DeadlineExceeded, match="large pages of other events"):
        cluster.list(PODS, "team-a")
    with shared.page_lock:
        cluster = DeadlineClient(answering(with_items([BODY])), 10, memory=shared)
        assert len(cluster.list(PODS, "team-a")) == 1


def test_an_event_that_waits_keeps_no_data() -> None:
    """A reply event of another step may have megabytes of it; all that matters is the object."""
    kept: list[int] = []
    marker = "muster-marker"

    def observe(_cluster: Any, _subject: ObjectRef) -> None:
        gc.collect()
        kept.append(sum(isinstance(found, dict) and marker in found for found in gc.get_objects()))

    step = a_step(
        observe=observe, plan=lambda _inputs, _now: NoOp(Reason.UP_TO_DATE, ""), other_events=lambda _: OWNER
    )
    headers, _ = an_event(type="dev.example.other")
    thread = threading.Thread(
        target=lambda: a_handler(step).handle(headers, json.dumps({marker: [{}]}).encode())
    )
    thread.start()
    thread.join(10)
    assert kept == [0]


def many(number: int) -> dict[str, str]:
    """So many labels or annotations."""
    return {f"{key:x}": f"{-key:x}" for key in range(number)}


@pytest.mark.parametrize(
    "body",
    [
        a_pod(),
        annotated(MIB),
        with_an_emoji(MIB),
        tolerating(MIB),
        {**BODY, "metadata": {**BODY["metadata"], "annotations": many(22_000)}},
        {**BODY, "metadata": {**BODY["metadata"], "labels": many(11_000)}},
        {**BODY, "metadata": {**BODY["metadata"], "annotations": many(600)}},
        {**BODY, "status": {"conditions": [{"type": key, "status": "True"} for key in many(10_000)]}},
    ],
)
def test_as_much_is_counted_as_an_object_and_its_view_take(body: Object) -> None:
    """A dict takes most when it has just grown: of 22,000 entries, or 11,000."""
    text = json.dumps(body).encode()
    counted = _estimated(body)
    tracemalloc.start()
    try:
        read = parsed(text)
        view = Pod.read(read)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert view.metadata.name == body["metadata"]["name"]
    assert taken < counted


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        annotated(MIB),
        with_an_emoji(MIB),
        {"a": "\N{ROCKET}"},
        {"a": [[]] * 1000},
        {"a": [{}] * 1000},
        {"a": [1] * 1000},
        {"a": [[[]] * 1000]},
        {"a": "," * 1000},
        {},
    ],
)
def test_the_bytes_of_an_answer_bound_the_memory_of_its_objects(body: Object) -> None:
    """So small answers, which are most, are not measured object by object."""
    answer = json.dumps({"items": [body]}, separators=(",", ":"), ensure_ascii=False)
    assert _estimated(body) <= _most(1, text_bytes(answer.encode()))

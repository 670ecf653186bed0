"""The memory of a sweep's lists is bounded, and one namespace cannot take the share of the others."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest

from muster import steps
from muster.cluster.observe.list_cache import ListCache, Listing, _Compressed
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.observe.sweep import owners
from muster.cluster.read import each
from muster.objects.resources import CONFIGMAPS, EVENTS, JOBS
from muster.policy.limits import Limits
from muster.policy.owners.job import Job
from tests.support.builders import Object, a_job, annotated, named, of_uid
from tests.unit.cluster.counting import CountingSnapshot

KIB = 1024
MOST = 64 * KIB
HOSTILE = 200


def a_job_of(namespace: str, number: int, size: int) -> Object:
    """A Job with group labels and an annotation of some size."""
    name = f"{namespace}-{number:03d}"
    job = a_job(named(name), of_uid(name), annotated({"x": "x" * size}))
    job["metadata"]["namespace"] = namespace
    return job


def swept(*jobs: Object) -> ListCache:
    """The lists of a sweep over these Jobs, read to the end."""
    cluster = Snapshot(jobs)
    cluster.limits = Limits(sweep_bytes=MOST)
    cache = ListCache(cluster, [Listing(JOBS, Job)])
    while not cache.complete:
        cache.read_page()
    return cache


def is_kept(cache: ListCache, job: Object) -> bool:
    """Whether a plan can be made from the list, without reading the Job again."""
    metadata = job["metadata"]
    try:
        Job.read(cache.get(JOBS, metadata["name"], metadata["namespace"]) or {})
    except ValueError:
        return False
    return True


def test_one_namespace_gets_no_more_than_is_left_for_the_others() -> None:
    """Half of the limit; the Jobs of a namespace that comes later are kept."""
    hostile = [a_job_of("a-hostile", number, 4 * KIB) for number in range(HOSTILE)]
    others = [a_job_of("team-b", number, 100) for number in range(10)]
    cache = swept(*hostile, *others)
    kept = sum(is_kept(cache, job) for job in hostile)
    assert 1 < kept <= MOST // 2 // (4 * KIB)
    assert all(is_kept(cache, job) for job in others)


def test_no_job_is_forgotten() -> None:
    """Jobs that are not kept are among those that the sweep looks at, and read live."""
    jobs = [a_job_of("a-hostile", number, 4 * KIB) for number in range(HOSTILE)]
    assert len(list(owners(swept(*jobs)))) == HOSTILE


@pytest.mark.parametrize(("room", "reads"), [(MOST, 1), (KIB, 2)])
def test_policies_that_a_sweep_reads_count_too(room: int, reads: int) -> None:
    """They are read once where there is room for them, else each time."""
    metadata = {"name": "muster-policy", "namespace": "team-a"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy": "x" * KIB}}
    cluster = CountingSnapshot(body)
    cluster.limits = Limits(sweep_bytes=room)
    cache = ListCache(cluster, [])
    for _ in range(2):
        assert cache.get(CONFIGMAPS, "muster-policy", "team-a") == body
    assert len(cluster.reads) == reads


def test_a_sweep_keeps_answers_unparsed() -> None:
    """Parsed, they have many times the bytes that count: with an emoji four times, in small values twenty."""
    metadata = {"name": "muster-policy", "namespace": "team-a"}
    data = {str(number): "" for number in range(KIB)} | {"policy": "x" * 4 * KIB + "\N{ROCKET}"}
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    class Parsing(Snapshot):
        def get(self, *_: Any, **__: Any) -> Object:
            parsed: Object = json.loads(text)
            return parsed

    cache = ListCache(Parsing([]), [])
    tracemalloc.start()
    try:
        cache.get(CONFIGMAPS, "muster-policy", "team-a")
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 2 * len(text)
    finally:
        tracemalloc.stop()


def an_event(number: int, message: str) -> Object:
    """An Event of a tenant."""
    metadata = {"name": f"e-{number}", "namespace": "team-a"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "message": message}


def a_failed_create(namespace: str, number: int) -> Object:
    """A FailedCreate Event, as small as one can be."""
    metadata = {"name": f"e-{number}", "namespace": namespace}
    event = an_event(number, "x") | {"metadata": metadata, "reason": "FailedCreate"}
    return event | {"involvedObject": {"kind": "Job", "namespace": namespace, "uid": f"u-{number}"}}


def test_events_for_which_there_is_no_room_are_left_out() -> None:
    """Anyone with `edit` may create any number of them; an owner's condition then lacks their message."""
    hostile = (a_failed_create("a-hostile", number) for number in range(1000))
    others = (a_failed_create("team-b", number) for number in range(3))
    cluster = Snapshot([*hostile, *others])
    cluster.limits = Limits(sweep_bytes=MOST)
    step = steps.step_named("emit_conditions")
    cache = ListCache(cluster, [listing for listing in step.lists if listing.resource == EVENTS])
    while not cache.complete:
        cache.read_page()
    assert 1 < len(cache.list(EVENTS, "a-hostile")) <= MOST // 2 // 512
    assert len(cache.list(EVENTS, "team-b", fields="reason=FailedCreate")) == 3


def test_an_answer_without_room_is_encoded_as_far_as_there_is_room() -> None:
    """Events of 1.3 MB each may be about one runtime: as JSON in ASCII they take six times their text."""
    events = [an_event(number, "\u00e9" * MOST) for number in range(50)]
    cluster = CountingSnapshot(*events)
    cluster.limits = Limits(sweep_bytes=MOST)
    cache = ListCache(cluster, [])
    tracemalloc.start()
    try:
        assert cache.list(EVENTS, "team-a") == events
        assert tracemalloc.get_traced_memory()[1] < 10 * MOST
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("character", ["x", "\u00e9", "\ud83d"])
def test_an_answer_that_is_kept_stays_as_it_is(character: str) -> None:
    """Also half characters, which JSON may have; a character counts as its bytes in UTF-8."""
    events = [an_event(number, character * 100) for number in range(50)]
    cluster = CountingSnapshot(*events)
    cluster.limits = Limits(sweep_bytes=50 * 450)
    cache = ListCache(cluster, [])
    for _ in range(2):
        assert cache.list(EVENTS, "team-a") == events
    assert cluster.reads == ["list Event"]


def test_owners_are_parsed_a_page_at_a_time() -> None:
    """A sweep that goes through all owners does not parse them all at once."""
    cache = swept(*(a_job_of("team-a", number, 100) for number in range(HOSTILE)))
    first = cache.page(JOBS)
    assert len(first.objects) == 16
    assert first.token
    assert [body["metadata"]["name"] for body in each(cache, JOBS)] == [
        body["metadata"]["name"] for body in cache.list(JOBS)
    ]


def test_objects_that_a_plan_reads_one_by_one_count_too() -> None:
    """An owner's pods may name thousands of groups, each of which has its own CompositePodGroups."""
    cache = swept(a_job_of("team-a", 0, 100))
    seen: list[tuple[int, str]] = []

    def count(text: bytes, namespace: str) -> None:
        seen.append((len(text), namespace))

    cache.before_parsing = count
    assert cache.get(JOBS, "team-a-000", "team-a") is not None
    assert cache.get(JOBS, "none", "team-a") is None
    ((size, namespace),) = seen
    assert size > 100
    assert namespace == "team-a"


def test_objects_that_resemble_each_other_take_a_tenth_of_their_text() -> None:
    """Thousands of Jobs of a cluster differ in names and numbers only."""
    jobs = [a_job_of("team-a", number, 200) for number in range(HOSTILE)]
    listing = Listing(JOBS, Job)
    text = sum(len(listing.kept(job, MOST)) for job in jobs)
    tracemalloc.start()
    try:
        table = _Compressed()
        for number, job in enumerate(jobs):
            table.add(("", str(number)), listing.kept(job, MOST))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert [table["", str(number)] for number in range(HOSTILE)] == [
        json.loads(listing.kept(job, MOST)) for job in jobs
    ]
    names = 250 * HOSTILE  # keys, and their places in the dict
    assert taken < text / 10 + names

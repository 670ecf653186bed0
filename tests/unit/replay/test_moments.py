"""Which moment of a recording events are replayed at, and what is said of objects that it lacks."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from muster.replay.moments import first_with, missing_objects, objects_of_events
from muster.replay.recorded_requests import MOST_VALUES, STRUCTURED, RecordedRequest
from muster.replay.snapshots import RecordedObjects
from tests.support import builders as b
from tests.support import cpu
from tests.unit.cli.sample import an_event

JOB = ("Job", "team-a", "llama")
OTHER = b.a_job(b.named("other"))
POD = b.a_pod(b.a_job(b.named("other")), 0)


def requests(*events: Any) -> list[RecordedRequest]:
    """Structured events, and one that no function could read."""
    bodies = [json.dumps(event).encode() for event in events]
    return [RecordedRequest({"content-type": STRUCTURED}, body, "e.jsonl") for body in [*bodies, b"[]"]]


def recording(**moments: list[Any]) -> list[RecordedObjects]:
    """A recording with these objects at each moment."""
    return [RecordedObjects(name.replace("_", " "), objects) for name, objects in moments.items()]


def test_the_jobs_that_events_are_about_are_counted() -> None:
    """Neither those that were deleted in the end, nor what the functions make themselves."""
    gone = b.a_job(b.named("gone"))
    found = objects_of_events(
        requests(
            an_event(b.a_job()),
            an_event(b.a_job(), "update"),
            an_event(gone),
            an_event(gone, "delete"),
            an_event(b.a_pod_group()),
        )
    )
    assert found == {JOB: 2}


def test_events_that_the_functions_would_refuse_are_not_parsed() -> None:
    """Base64 of half a packed megabyte would take gigabytes."""
    dense = an_event(b.a_job() | {"values": [1] * (MOST_VALUES + 1)})
    dense["data_base64"] = base64.b64encode(json.dumps(dense.pop("data")).encode()).decode()
    assert objects_of_events(requests(dense)) == {}


def test_of_a_single_event_every_object_counts() -> None:
    """`muster plan` needs a PodGroup if the event is about one."""
    group = b.a_pod_group()
    found = objects_of_events(requests(an_event(group)), owners_only=False)
    assert found == {("PodGroup", "team-a", group["metadata"]["name"]): 1}


@pytest.mark.parametrize(
    ("moments", "chosen"),
    [
        pytest.param({"start": [OTHER, POD], "end": [b.a_job(), POD]}, "end", id="the one that has the Job"),
        pytest.param(
            {"start": [b.a_job()], "middle": [b.a_job(), POD], "end": [b.a_job(), POD]},
            "middle",
            id="the first that has the Job and a pod",
        ),
        pytest.param(
            {"start": [b.a_job()], "end": [b.a_job()]}, "start", id="no pods: the first with the Job"
        ),
        pytest.param({"start": [OTHER], "end": [OTHER, POD]}, "end", id="no Job: the first with a pod"),
        pytest.param({"start": [], "end": []}, "start", id="nothing at all"),
    ],
)
def test_the_earliest_moment_with_the_jobs_is_taken(moments: dict[str, list[Any]], chosen: str) -> None:
    """The functions can act there; later they have acted already."""
    assert first_with([JOB], recording(**moments)).checkpoint == chosen


def test_a_missing_job_is_named_with_a_moment_that_has_it() -> None:
    """With the number of its events; of many only some are named."""
    snapshots = recording(start=[OTHER], after_5_s=[b.a_job()], end=[b.a_job()])
    assert len(list(missing_objects({JOB: 2}, snapshots[0], snapshots))) == 1
    assert list(missing_objects({JOB: 2}, snapshots[2], snapshots)) == []
    many = {("Job", "team-a", f"job-{number}"): 1 for number in range(5)}
    lines = list(missing_objects(many, snapshots[0], snapshots))
    assert len(lines) == 4


def test_files_without_moments_have_none_to_suggest() -> None:
    """The line says what the files lack."""
    assert len(list(missing_objects({JOB: 1}, RecordedObjects("", []), [RecordedObjects("", [])]))) == 1


def test_objects_outside_of_moments_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of moments beside thousands of such objects would take minutes."""
    shared = [b.a_job(), POD]
    moments = [RecordedObjects(str(number), [], shared) for number in range(100)]
    copied: list[int] = []

    def latest(objects: list[Any]) -> list[Any]:
        copied.append(len(objects))
        return objects

    monkeypatch.setattr("muster.replay.snapshots._latest", latest)
    assert first_with([JOB], moments) is moments[0]
    assert list(missing_objects({JOB: 1}, moments[0], moments)) == []
    assert copied == [2]


def test_the_objects_of_a_moment_come_after_the_shared_ones() -> None:
    """Of several with one name the last counts."""
    old, new = b.a_job(), b.a_job(b.labelled({"a": "b"}))
    assert RecordedObjects("start", [new], [old, OTHER]).objects == [new, OTHER]


def test_a_moment_is_chosen_in_linear_time() -> None:
    """Of 120,000 moments beside 55,000 Jobs without a moment each was compared with all Jobs: minutes."""
    names = [f"job-{number}" for number in range(5000)]
    shared = [{"kind": "Job", "metadata": {"namespace": "team-a", "name": name}} for name in names]
    moments = [RecordedObjects(str(number), [], shared) for number in range(5000)]
    with cpu.at_most(0.5):
        assert first_with([("Job", "team-a", name) for name in names], moments) is moments[0]

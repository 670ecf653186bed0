"""`muster view` and `muster replay --html`: what the page gets; tests/browser looks at the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muster.cli.page import live_page
from muster.cli.view import app_of
from muster.replay import timeline as timelines
from muster.replay.activity import Activity
from muster.replay.files import read_events
from muster.replay.snapshots import read_snapshots
from muster.replay.timeline import Timeline, differences, recorded
from tests.support import builders as b
from tests.unit.cli.conftest import Muster, assert_names

RECORDINGS = Path(__file__).parents[2] / "replays/recordings"
EVENTS = RECORDINGS / "5-does-not-fit.resource.jsonl.gz"
OBJECTS = RECORDINGS / "5-does-not-fit.objects.yaml.gz"
GANG = "gang/team-a/Job/llama"


def test_a_recording_is_told_in_order_with_who_wrote() -> None:
    """A gang that does not fit is refused, then placed; each function's write is known by what it wrote."""
    entries = recorded(read_events(EVENTS), read_snapshots([OBJECTS])).since()["entries"]
    rows = [row for entry in entries for key, row in entry["rows"].items() if key.startswith("gang/")]
    states = [str(row["state"]) for row in rows if row]
    assert list(dict.fromkeys(states)) == ["Waiting", "Refused", "Placed"]
    writers = dict.fromkeys(entry["by"] for entry in entries if entry.get("by"))
    assert list(writers) == ["muster-create-workload", "muster-create-pod-groups", "muster-patch-pods"]
    assert [entry["at"] for entry in entries] == sorted(entry["at"] for entry in entries)


def test_a_run_stands_before_its_writes() -> None:
    """Whether its log line comes before or after they are seen; each run has its own."""
    timeline = Timeline([b.a_job()])
    workload = b.a_workload(b.a_gang("main", 2))
    workload["metadata"]["managedFields"] = [{"manager": "muster-create-workload"}]
    other = {**workload, "metadata": {**workload["metadata"], "name": "other"}}
    what = "add", "Job team-a/llama", "done", "WorkloadCreated", "", 1
    timeline.add_change(9.9, "ADDED", workload)
    timeline.add_run(Activity(10.0, "create_workload", *what))
    timeline.add_run(Activity(10.2, "create_workload", *what))
    timeline.add_change(10.21, "ADDED", other)
    timeline.add_run(Activity(10.4, "create_workload", *what))
    timeline.add_change(10.41, "MODIFIED", {**other, "spec": {}})
    timeline.publish(10.1)
    assert len(timeline.since()["entries"]) == 2
    timeline.publish()
    entries = timeline.since()["entries"]
    assert ["run" in entry for entry in entries] == [True, False] * 3
    assert {entry["gang"] for entry in entries} == {GANG}
    assert [entry["at"] for entry in entries] == [9.9, 9.9, 10.2, 10.21, 10.4, 10.41]


def test_old_entries_are_forgotten_but_not_what_they_led_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that lacks some of them gets all that there is."""
    monkeypatch.setattr(timelines, "MOST_ENTRIES", 2)
    timeline = Timeline()
    for number, body in enumerate([b.a_job(), b.a_workload(b.a_gang("main", 2)), b.a_pod_group()]):
        timeline.add_change(float(number), "ADDED", body)
    timeline.publish()
    assert (timeline.since()["from"], timeline.first) == (1, 1)
    assert timeline.since(2)["from"] == 2
    assert "base" not in timeline.since(2)


NEW = ("B", None, '{"type": "B"}')


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1, "resourceVersion": "1"}, {"a": 2, "resourceVersion": "2"}, [("a", "1", "2")]),
        ([{"type": "A", "x": "1"}], [{"type": "B"}, {"type": "A", "x": "2"}], [("A.x", "1", "2"), NEW]),
        ([1], [1, 2], [("", "[1]", "[1, 2]")]),
    ],
)
def test_fields_that_differ(before: Any, after: Any, expected: list[Any]) -> None:
    """By path; conditions by their type; versions are no difference."""
    assert list(differences(before, after)) == expected


def test_the_server_reads_only_and_knows_its_name() -> None:
    """A page of another origin that was led to this machine is refused."""
    timeline = Timeline([b.a_job(), b.a_pod_group()])
    client = app_of(live_page("here"), timeline).test_client()
    assert "here" in client.get("/").text
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert client.post("/").status_code == 405
    with client.get("/events", buffered=False) as answer:
        first = next(answer.iter_encoded())
    data = json.loads(first.partition(b"data: ")[2])
    assert (data["from"], GANG in data["base"]) == (0, True)


def test_a_recording_is_written_as_one_page(muster: Muster, tmp_path: Path) -> None:
    """With its objects in it, and no way out of the script element."""
    page = tmp_path / "out.html"
    result = muster("replay", str(EVENTS), "--objects", str(OBJECTS), "--html", str(page))
    assert result.exit_code == 0, result.output
    assert_names(page.read_text(), "big-main-03f39408", "Content-Security-Policy")
    assert page.read_text().count("</script>") == 1


def test_events_without_objects_make_no_page(muster: Muster, tmp_path: Path) -> None:
    """References say too little."""
    result = muster("view", str(RECORDINGS / "5-does-not-fit.reference.jsonl"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "hold no objects" in result.stderr
    assert list(tmp_path.iterdir()) == []
